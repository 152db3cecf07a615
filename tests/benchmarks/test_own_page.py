"""docs/own-results.md says what the record says."""

from pathlib import Path

from benchmarks.own import page

from benchmarks import own_data

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_page_is_written_from_the_record():
    found = (ROOT / "docs" / "own-results.md").read_text(encoding="utf-8")
    assert found == page.of_files(ROOT, own_data.read(own_data.RECORD))


def test_the_record_is_of_the_draws_that_the_seeds_give():
    """Every method of a cell and seed has seen the same rows and labels."""
    drawn: dict[tuple[str, str, int], set[str]] = {}
    for record in own_data.read(own_data.RECORD):
        drawn.setdefault((record["set"], record["missing"], record["seed"]), set()).add(record["rows"])
    assert len(drawn) > 200
    assert {len(hashes) for hashes in drawn.values()} == {1}


def test_the_readme_says_so():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert page.in_short(own_data.read(own_data.RECORD)) in readme
