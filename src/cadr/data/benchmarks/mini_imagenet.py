"""mini-ImageNet: 100 classes of 600 images, 84×84: an `.npz`, or a folder with the usual CSVs of `filename,label`.

The CSVs of the few-shot literature part the *classes* (64 train, 16 val, 20 test). As an ordinary benchmark of 100
classes the last sixth of each class's images, in the order of the CSV, is for testing: 500 and 100 of 600. CSVs that
part the images instead (every class in both train.csv and test.csv) are taken as they are. An `.npz` has x_train,
y_train, x_test and y_test, classes in the order of their WordNet numbers. There is no checksum: whoever makes the set
cuts the images out of ImageNet and encodes them anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cadr.data.pool import Pool
from cadr.data.sources.csv_file import column, read_csv
from cadr.data.sources.images import decode_all
from cadr.data.sources.npz import read_npz
from cadr.errors import DataError

SIDE = 84
TRAIN, TEST = 500, 100  # images of a class, in an .npz
CSVS = ("train.csv", "val.csv", "test.csv")

Listed = list[tuple[Path, str]]


class MiniImagenetError(DataError):
    """The folder of mini-ImageNet is not laid out in a usual way."""


def open_mini_imagenet(root: Path) -> Pool:
    return _npz(root) if root.suffix == ".npz" else _folder(root)


def _npz(path: Path) -> Pool:
    arrays = read_npz(path)
    for name in ("x_train", "y_train", "x_test", "y_test"):
        if name not in arrays:
            raise MiniImagenetError(f"{path}: there is no array {name}")
    for part, each in (("train", TRAIN), ("test", TEST)):
        x, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
        expected = (each * len(WORDS), SIDE, SIDE, 3)
        if x.dtype != np.uint8 or x.shape != expected:
            raise MiniImagenetError(f"{path}: x_{part} is {x.dtype} of shape {x.shape}, expected uint8 of {expected}")
        if y.dtype != np.int64 or not np.array_equal(np.sort(y), np.repeat(np.arange(len(WORDS)), each)):
            raise MiniImagenetError(
                f"{path}: y_{part} should be int64, and have {each} times each label from 0 to {len(WORDS) - 1}"
            )
    return Pool(
        examples=arrays["x_train"],
        labels=arrays["y_train"],
        class_names=tuple(WORDS.values()),
        name="mini_imagenet",
        test_examples=arrays["x_test"],
        test_labels=arrays["y_test"],
    )


def _folder(root: Path) -> Pool:
    listed = {name: _listed(root, root / name) for name in CSVS if (root / name).is_file()}
    if "train.csv" not in listed or "test.csv" not in listed:
        raise MiniImagenetError(f"{root} lacks train.csv or test.csv, the usual lists of filename,label")
    train, test = _parted(root, listed)
    names = tuple(sorted({label for _, label in train}))
    index = {name: i for i, name in enumerate(names)}
    return Pool(
        examples=decode_all([path for path, _ in train], SIDE),
        labels=np.array([index[label] for _, label in train], dtype=np.int64),
        class_names=tuple(WORDS.get(name, name) for name in names),
        name="mini_imagenet",
        test_examples=decode_all([path for path, _ in test], SIDE),
        test_labels=np.array([index[label] for _, label in test], dtype=np.int64),
        identifiers=tuple(path.relative_to(root).as_posix() for path, _ in train),
    )


def _parted(root: Path, listed: dict[str, Listed]) -> tuple[Listed, Listed]:
    everything = [row for name in CSVS for row in listed.get(name, [])]
    paths = [path for path, _ in everything]
    if len(set(paths)) != len(paths):
        twice = next(p for p in paths if paths.count(p) > 1)
        raise MiniImagenetError(f"{root}: {twice.name!r} is listed twice in the CSVs")
    seen, tested = ({label for _, label in listed[name]} for name in ("train.csv", "test.csv"))
    if seen == tested:
        return listed["train.csv"] + listed.get("val.csv", []), listed["test.csv"]
    if seen & tested:
        raise MiniImagenetError(f"{root}: train.csv and test.csv share some classes but not all")
    train: Listed = []
    test: Listed = []
    for label in sorted({label for _, label in everything}):
        of_class = [row for row in everything if row[1] == label]
        last = len(of_class) // 6
        if last == 0:
            raise MiniImagenetError(f"{root}: class {label!r} has {len(of_class)} images, too few to test on a sixth")
        train += of_class[:-last]
        test += of_class[-last:]
    return train, test


def _listed(root: Path, path: Path) -> Listed:
    header, rows = read_csv(path)
    file_at, label_at = column(path, header, "filename"), column(path, header, "label")
    return [
        (_found(root, path, line, row[file_at].strip(), row[label_at].strip()), row[label_at].strip())
        for line, row in rows
    ]


def _found(root: Path, path: Path, line: int, name: str, label: str) -> Path:
    """The image, in its class's folder or in the one folder that some releases have."""
    for part in (name, label):
        if not part or "/" in part or "\\" in part or part.startswith("."):
            raise MiniImagenetError(f"{path}, line {line}: {part!r} is not a plain name")
    choices = (root / label / name, root / "images" / label / name, root / "images" / name)
    for choice in choices:
        if choice.is_file():
            return choice
    raise MiniImagenetError(f"{path}, line {line}: {name!r} is neither in {label!r} nor in images/")


_NAMES = """
    n01532829 house_finch n01558993 robin n01704323 triceratops n01749939 green_mamba n01770081 harvestman
    n01843383 toucan n01855672 goose n01910747 jellyfish n01930112 nematode n01981276 king_crab n02074367 dugong
    n02089867 walker_hound n02091244 ibizan_hound n02091831 saluki n02099601 golden_retriever n02101006 gordon_setter
    n02105505 komondor n02108089 boxer n02108551 tibetan_mastiff n02108915 french_bulldog n02110063 malamute
    n02110341 dalmatian n02111277 newfoundland n02113712 miniature_poodle n02114548 white_wolf
    n02116738 african_hunting_dog n02120079 arctic_fox n02129165 lion n02138441 meerkat n02165456 ladybug
    n02174001 rhinoceros_beetle n02219486 ant n02443484 black_footed_ferret n02457408 three_toed_sloth
    n02606052 rock_beauty n02687172 aircraft_carrier n02747177 ashcan n02795169 barrel n02823428 beer_bottle
    n02871525 bookshop n02950826 cannon n02966193 carousel n02971356 carton n02981792 catamaran n03017168 chime
    n03047690 clog n03062245 cocktail_shaker n03075370 combination_lock n03127925 crate n03146219 cuirass
    n03207743 dishrag n03220513 dome n03272010 electric_guitar n03337140 file n03347037 fire_screen
    n03400231 frying_pan n03417042 garbage_truck n03476684 hair_slide n03527444 holster n03535780 horizontal_bar
    n03544143 hourglass n03584254 ipod n03676483 lipstick n03770439 miniskirt n03773504 missile n03775546 mixing_bowl
    n03838899 oboe n03854065 organ n03888605 parallel_bars n03908618 pencil_box n03924679 photocopier n03980874 poncho
    n03998194 prayer_rug n04067472 reel n04146614 school_bus n04149813 scoreboard n04243546 slot_machine
    n04251144 snorkel n04258138 solar_dish n04275548 spider_web n04296562 stage n04389033 tank
    n04418357 theater_curtain n04435653 tile_roof n04443257 tobacco_shop n04509417 unicycle n04515003 upright_piano
    n04522168 vase n04596742 wok n04604644 worm_fence n04612504 yawl n06794110 street_sign n07584110 consomme
    n07613480 trifle n07697537 hotdog n07747607 orange n09246464 cliff n09256479 coral_reef n13054560 bolete
    n13133613 ear_of_corn"""

WORDS = dict(zip(_NAMES.split()[::2], _NAMES.split()[1::2], strict=True))  # in the usual order: by number
