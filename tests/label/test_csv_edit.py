"""One cell of a CSV changes, or one line is added; every other byte stays, whatever program wrote it."""

import csv
import io
import multiprocessing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadr.data.sources.csv_file import CsvError, read_csv
from cadr.label.csv_edit import editing

# with @ where a label is missing
MARKED = {
    "plain": b"file,label\n1.png,dark\n2.png,@\n",
    "of a spreadsheet": b"\xef\xbb\xbffile;label\r\n1.png;dark\r\n2.png;@\r\n",
    "without an end": b"file,label\n1.png,dark\n2.png,@",
    "quoted": b'"file","label","note"\n"1.png","dark","a ""b"""\n"2.png",@,"two\nlines, one cell"\n',
    "with blank lines and blanks": b"file , label\n\n 1.png , dark \n\n2.png ,@\n\n",
    "with tabs and a sign that only Unicode takes for an end": "file\tlabel\n1\u2028.png\tdark\n2.png\t@\n".encode(),
}
FILES = {name: content.replace(b"@", b"") for name, content in MARKED.items()}


def write(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    ("label", "written"), [("light", b"light"), ('dark; "royal",\tblue', b'"dark; ""royal"",\tblue"')]
)
def test_a_blank_cell_is_filled_in_and_emptied_again(name, label, written, tmp_path):
    path = write(tmp_path / "labels.csv", FILES[name])
    for value, expected in ((label, MARKED[name].replace(b"@", written)), ("", FILES[name])):
        with editing(path) as text:
            record = next(r for r in text.records if r.cells and r.cells[0].strip() == "2.png")
            record.text = record.with_cell(1, value, text.sign)
        assert path.read_bytes() == expected


def _rows(content):
    text = content.decode("utf-8-sig")
    sign = next(s for s in ",;\t" if s in text.splitlines()[0])
    return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=sign) if row][1:]


@pytest.mark.parametrize("name", FILES)
def test_a_line_is_added_and_taken_away_again(name, tmp_path):
    path = write(tmp_path / "labels.csv", FILES[name])
    with editing(path) as text:
        text.append(["3,;\t.png", "new", *[""] * (len(text.header) - 2)])
    content = path.read_bytes()
    assert content.startswith(FILES[name])
    assert _rows(content)[-1][:2] == ["3,;\t.png", "new"]
    assert content.endswith(b"\r\n") == (b"\r\n" in FILES[name])
    with editing(path) as text:
        del text.records[-1]
    assert path.read_bytes() in (FILES[name], FILES[name] + b"\n")


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=12)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=6), st.data())
def test_any_cell_of_any_table(tmp_path_factory, rows, data):
    """The file that Python's own csv module writes of the changed table reads the same as the edited file."""
    path = tmp_path_factory.mktemp("any") / "table.csv"
    sign, end = data.draw(st.sampled_from(",;\t")), data.draw(st.sampled_from(["\n", "\r\n"]))
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=sign, lineterminator=end).writerows([("a", "b", "c"), *rows])
    row, column = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.integers(0, 2))
    value = data.draw(CELLS)
    with editing(path) as text:
        record = [r for r in text.records[1:] if r.cells][row]
        record.text = record.with_cell(column, value, text.sign)
    expected = [list(line) for line in rows]
    expected[row][column] = value
    assert [line for _, line in read_csv(path)[1]] == expected


def test_nothing_is_written_where_nothing_changes(tmp_path):
    path = write(tmp_path / "labels.csv", FILES["plain"])
    before = path.stat()
    with editing(path):
        pass
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_mode_and_link_are_kept(tmp_path):
    path = write(tmp_path / "labels.csv", FILES["plain"])
    path.chmod(0o640)
    (tmp_path / "link.csv").symlink_to(path)
    with editing(tmp_path / "link.csv") as text:
        text.append(["3.png", "new"])
    assert (tmp_path / "link.csv").is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.read_bytes().endswith(b"3.png,new\n")


@pytest.mark.parametrize("content", [b"file,label\n\xe9,dark\n", b'file,label\n"1.png,dark\n', b'a,b\n"1"2,3\n'])
def test_what_is_no_table_is_refused_and_left_alone(content, tmp_path):
    path = write(tmp_path / "labels.csv", content)
    with pytest.raises(CsvError), editing(path) as text:
        text.append(["x", "y"])
    assert path.read_bytes() == content


def test_an_error_inside_leaves_the_file_alone(tmp_path):
    path = write(tmp_path / "labels.csv", FILES["plain"])

    def fail():
        with editing(path) as text:
            text.append(["3.png", "new"])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert path.read_bytes() == FILES["plain"]
    assert [p.name for p in tmp_path.iterdir()] == ["labels.csv"]


def _append_many(path, start):
    for i in range(start, start + 25):
        with editing(path) as text:
            text.append([f"{i}.png", "dark"])


def test_two_processes_lose_nothing_of_each_other(tmp_path):
    path = write(tmp_path / "labels.csv", b"file,label\n")
    context = multiprocessing.get_context("fork")
    others = [context.Process(target=_append_many, args=(path, start)) for start in (0, 100)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert len(_rows(path.read_bytes())) == 50
