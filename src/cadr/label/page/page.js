// One example after another. All that comes from the data is put in as text, never as HTML.
"use strict";

const $ = id => document.getElementById(id);
let state = null, busy = false, found = [], chosen = 0, soon = null;

async function ask(path, body) {
  const options = body === undefined ? {} :
    { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer: is cadr label still running?");
  }
  const content = (answer.headers.get("Content-Type") || "").startsWith("application/json") ?
    await answer.json() : { problem: await answer.text() };
  if (!answer.ok) throw new Error(content.problem);
  return content;
}

async function act(path, body, said) {
  if (busy) return;
  busy = true;
  try {
    show(await ask(path, body), said);
    tell("");
  } catch (error) {
    tell(error.message);
  } finally {
    busy = false;
  }
}

function tell(problem) {
  $("problem").hidden = !problem;
  $("problem").textContent = problem;
}

const row = () => ({ row: state.example.row });
const asking = () => state && state.example && !state.training.running;
const label = name => asking() && act("label", { ...row(), label: name }, `Labelled ${name}.`);
const skip = () => asking() && act("skip", row(), "Skipped.");
const cannot = () => asking() && act("cannot-tell", row(), "Cannot tell.");
const undo = () => state && state.can_undo && !state.training.running && act("undo", {}, "Undone.");
const train = () => state && !state.training.running && act("train", {}, "Training begins.");

function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const percent = share => {
  const value = 100 * share;
  return value >= 10 || value === 0 ? value.toFixed(0) : value >= 0.1 ? value.toFixed(1) : "< 0.1";
};

function show(next, said = "") {
  const before = state;
  state = next;
  const { example, training } = state;
  const changed = !before || before.run !== state.run || JSON.stringify(before.example) !== JSON.stringify(example);
  $("progress").textContent = `${state.passed} of ${state.asked} shown, ${state.labelled} labelled; ` +
    `labels go to ${state.where}`;
  if (changed) showExample(example);
  for (const id of ["cannot", "skip"]) $(id).disabled = !asking();
  $("query").disabled = !asking();
  $("undo").disabled = !state.can_undo || training.running;
  showImplied(state.implied);
  showTraining();
  if (changed) {
    const guess = example && example.guesses.length ? ` Guess: ${example.guesses[0][0]}.` : "";
    $("said").textContent = said + (example ? ` Next: ${example.name}.${guess}` : " That was the last one.");
    closeSearch();
    if (before) $("example").focus({ preventScroll: true });
    if (before) scrollTo(0, 0);
  }
  soon = null;
  if (state.next && state.next.picture) (soon = new Image()).src = state.next.picture;  // so that nobody waits for it
  if (training.running) setTimeout(poll, 500);
}

async function poll() {
  try {
    show(await ask("state"));
    tell("");
  } catch (error) {
    tell(error.message);
    setTimeout(poll, 2000);
  }
}

function showExample(example) {
  $("shown").replaceChildren();
  $("guesses").replaceChildren();
  $("search").hidden = !example;
  $("name").textContent = example ? example.name : "All of them were shown. Train again to get new suggestions.";
  if (!example) return;
  if (example.picture) {
    const image = element("img", "", { src: example.picture, alt: example.name });
    image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth <= 320));
    $("shown").append(image);
  } else if (example.text !== null) {
    $("shown").append(element("blockquote", example.text));
  } else {
    const table = element("table"), body = element("tbody");
    for (const [column, cell] of example.cells) {
      const line = element("tr");
      line.append(element("th", column, { scope: "row" }), element("td", cell));
      body.append(line);
    }
    table.append(body);
    $("shown").append(table);
  }
  example.guesses.forEach(([name, probability], i) => {
    const button = element("button", "", { type: "button", "aria-label": `${i + 1}: ${name}, ${percent(probability)} %` });
    const bar = element("span", "", { class: "bar" });
    bar.style.width = `${100 * probability}%`;
    button.append(element("kbd", String(i + 1)), element("span", name),
      element("span", `${percent(probability)} %`, { class: "n quiet" }), bar);
    button.addEventListener("click", () => label(name));
    $("guesses").append(button);
  });
}

function showImplied(implied) {
  $("implied").hidden = !implied;
  if (!implied) return;
  const surprising = implied.classes.filter(c => c.surprising).map(c => c.name);
  $("implied-words").textContent = `After ${implied.answers} answers. ` + (surprising.length ?
    `The answers contradict the class shares that the model predicts for: ${surprising.join(", ")}.` :
    "They do not contradict the class shares that the model predicts.") +
    " The examples were not drawn at random, so a class is judged by how often it was expected of these very ones.";
  $("implied-rows").replaceChildren(...implied.classes.map(c => {
    const line = element("tr", "", c.surprising ? { class: "surprising" } : {});
    line.append(element("th", c.name, { scope: "row" }));
    for (const text of [String(c.given), c.expected.toFixed(1), percent(c.believed),
      `${percent(c.implied)} (${percent(c.low)}–${percent(c.high)})`]) line.append(element("td", text, { class: "n" }));
    return line;
  }));
}

function showTraining() {
  const { training } = state;
  $("train").disabled = training.running || state.labelled === 0;
  $("training-words").textContent = training.running ? training.line || "Training." : training.problem ||
    (state.labelled === 0 ? "Label some first, about ten at a time." :
      `Learn from ${state.labelled} new labels, here or with this command; then new examples are suggested.`);
  $("command").textContent = state.command;
  $("command").hidden = training.running || state.labelled === 0;
}

function search() {
  const query = $("query").value.trim().toLocaleLowerCase();
  const position = name => name.toLocaleLowerCase().indexOf(query);
  found = query ? state.classes.filter(name => position(name) >= 0).sort((a, b) => position(a) - position(b)) : state.classes;
  found = found.slice(0, 50);
  chosen = 0;
  $("found").replaceChildren(...found.map((name, i) => {
    const option = element("li", name, { role: "option", id: `found-${i}` });
    option.addEventListener("mousedown", event => { event.preventDefault(); pick(i); });
    return option;
  }));
  $("found").hidden = !found.length;
  $("query").setAttribute("aria-expanded", String(found.length > 0));
  mark();
}

function mark() {
  [...$("found").children].forEach((option, i) => option.setAttribute("aria-selected", String(i === chosen)));
  const option = $("found").children[chosen];
  if (option) option.scrollIntoView({ block: "nearest" });
  if (option) $("query").setAttribute("aria-activedescendant", option.id);
  else $("query").removeAttribute("aria-activedescendant");
}

function pick(i) {
  if (found[i] !== undefined) label(found[i]);
}

function closeSearch() {
  $("query").value = "";
  $("found").hidden = true;
  $("query").setAttribute("aria-expanded", "false");
  $("query").removeAttribute("aria-activedescendant");
}

$("query").addEventListener("input", search);
$("query").addEventListener("focus", search);
$("query").addEventListener("blur", closeSearch);
$("query").addEventListener("keydown", event => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && found.length) chosen = (chosen + step + found.length) % found.length;
  if (step) mark();
  else if (event.key === "Enter") pick(chosen);
  else if (event.key === "Escape") $("example").focus();
  else return;
  event.preventDefault();
});

document.addEventListener("keydown", event => {
  if (event.repeat || event.altKey || event.isComposing || event.target.id === "query") return;
  if ((event.ctrlKey || event.metaKey) && event.key === "z") { event.preventDefault(); undo(); return; }
  if (event.ctrlKey || event.metaKey || !$("keys").checked) return;
  const actions = { 0: cannot, s: skip, u: undo, "/": () => $("query").focus() };
  const guess = /^[1-9]$/.test(event.key) && asking() ? state.example.guesses[event.key - 1] : null;
  if (guess) label(guess[0]);
  else if (actions[event.key]) actions[event.key]();
  else return;
  event.preventDefault();
});

for (const [id, action] of Object.entries({ cannot, skip, undo, train })) $(id).addEventListener("click", action);
poll();
