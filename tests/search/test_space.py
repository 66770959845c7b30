import pathlib

import pytest
from conftest import LAYOUTS
from maya.search import plan, templates
from maya.search.enumeration import NoConfiguration, Tree, configurations, require_satisfiable
from maya.search.space import Space, SpaceError

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAIN = """
command = ["python", "train.py", "--batch", "{batch}"]
[parameters]
batch = [1, 2]
"""


def parse(text, **more):
    return Space.parse(text.encode(), pathlib.Path("space.toml"), **more)


@pytest.mark.parametrize("text, words", [
    ("command = [\n", "space.toml:"),
    ("[parameters]\nx = = 1\n", "space.toml:2:5: "),
    (PLAIN.replace("{batch}", "{size}"), "placeholder {size} is no parameter, constant or derived value"),
    (PLAIN + "[baseline]\nbatch = [1, 2]\n", "[baseline] batch: must be one value, found [1, 2]"),
    (PLAIN + "unused = [1, 2]\n", "unused: is in nothing that a trial is started with"),
    (PLAIN.replace("{batch}", "{batc}"), "did you mean `batch`"),
    (PLAIN + "[objectiv]\ngoal = 'x'\n", "space.toml:5: [objectiv] unknown table; did you mean `objective`"),
    (PLAIN + "[objective]\ngoal = 'stp_time'\n", "did you mean `step_time`"),
    (PLAIN + "[objective]\ngoal = 'time_to_tokens'\n", "needs `tokens`"),
    (PLAIN.replace("[1, 2]", "{ powers = [1, 2] }"), "space.toml:4: [parameters] batch: must have exactly one of"),
    (PLAIN.replace("[1, 2]", "{ integers = [5, 1] }"), "must be [lowest, highest]"),
    (PLAIN.replace("[1, 2]", "[]"), "at least one value"),
    (PLAIN.replace("[1, 2]", "[1, 1]"), "twice"),
    (PLAIN + "[derived]\na = 'b'\nb = 'a'\n", "depends on itself (a → b → a)"),
    (PLAIN + "[flags]\n'--x' = 'batch *'\n", "ends too early at column 8"),
    (PLAIN + "[limits]\nmemory_headroom = 5\n", "share below 1"),
    (PLAIN + "[trial]\ntimeout_s = 'x'\n", "must be a number"),
    (PLAIN + "[baseline]\nsize = 1\n", "is no parameter"),
    (PLAIN.replace("[1, 2]", "{ choice = [1], when = 'true' }"), "has `when` but no `otherwise`"),
    ("command = ['x']\n", "has nothing to search over"),
    (PLAIN.replace("command", "comand"), "did you mean `command`"),
    (PLAIN + "constraints = 3\n", "is also"),
])
def test_errors_name_the_mistake_and_its_place(text, words):
    if words == "is also":
        text, words = PLAIN + "[constants]\nbatch = 3\n", "is also in [constants]"
    with pytest.raises(SpaceError) as problem:
        parse(text)
    assert words in str(problem.value), problem.value
    assert str(problem.value).startswith("space.toml")


def test_not_text_and_too_large():
    with pytest.raises(SpaceError, match="not UTF-8"):
        Space.parse(b"a = '\xff'", pathlib.Path("space.toml"))
    with pytest.raises(SpaceError, match="at most"):
        Space.parse(b"#" * (2 << 20), pathlib.Path("space.toml"))


def test_configurations_equal_the_filtered_product():
    space = parse(LAYOUTS)
    found, complete = configurations(space, 100000)
    assert complete
    expected = set()
    for tp in (1, 2, 4, 8):
        for pp in (1, 2, 4, 8):
            dp = 64 // (tp * pp)
            for micro in (1, 2, 4):
                for vpp in (1, 2) if pp > 1 else (None,):
                    for recompute in ("none", "selective", "full"):
                        for sp in (False, True) if tp > 1 else (False,):
                            if 512 % (dp * micro) == 0 and 32 % (pp * (vpp or 1)) == 0:
                                expected.add((tp, pp, micro, vpp, recompute, sp))
    assert {tuple(c[n] for n in space.parameters) for c in found} == expected and len(found) == len(expected)
    assert all(c["dp"] == 64 // (c["tp"] * c["pp"]) for c in found)


def test_large_spaces_are_listed_lazily():
    text = PLAIN + "\n".join(f"p{i} = {{ integers = [1, 1000] }}" for i in range(4))
    text += "\n[flags]\n" + "\n".join(f"'--p{i}' = 'p{i}'" for i in range(4))
    found, complete = configurations(parse(text), 1000)
    assert len(found) == 1000 and not complete


def test_the_smallest_conflict_is_named():
    text = LAYOUTS.replace(
        "constraints = [", 'constraints = ["tp < 64", "tp > 2", "micro < 100", "pp * tp == 4 and pp > 1", '
    )
    with pytest.raises(NoConfiguration) as problem:
        require_satisfiable(parse(text))
    lines = [line.strip() for line in str(problem.value).splitlines()[1:]]
    assert lines == ["tp > 2", "pp * tp == 4 and pp > 1"]
    with pytest.raises(NoConfiguration, match="holds for no configuration"):
        require_satisfiable(parse(LAYOUTS.replace('constraints = [', 'constraints = ["tp > 8", "pp > 1", ')))


def test_divisions_with_a_remainder_are_not_configurations():
    text = (
        PLAIN.replace("[1, 2]", "[1, 2, 3, 4]") + "[derived]\nrest = '12 / (batch * 2)'\n[flags]\n'--rest' = 'rest'\n"
    )
    assert [c["batch"] for c in configurations(parse(text), 10)[0]] == [1, 2, 3]


def test_plan():
    space = parse("""
command = ["torchrun", "train.py", "--config={config}", "{flags}", "--", "{{literal}}"]
[parameters]
tp = [1, 2]
full = true
way = { choice = ["a", "b"], when = "tp > 1" }
nic = [25, 50]
[flags]
"--tp" = "tp"
"--full" = "full"
"--way=" = "way"
[environment]
DEPTH = "{2 * tp}"
[files.config]
name = "c.json"
text = '{"tp": {{ tp }}, "full": {{ full }}, "nested": {"x": 1}}'
[cluster]
name = "dgx-h100"
nodes = "tp"
set = { "network.nic_gbps" = "{nic}" }
""")
    made = plan.make(space, {"tp": 2, "full": True, "way": "a", "nic": 25})
    assert made.command(pathlib.Path("/t")) == [
        "torchrun",
        "train.py",
        "--config=/t/c.json",
        "--tp",
        "2",
        "--full",
        "--way=a",
        "--",
        "{literal}",
    ]
    assert made.environment == {"DEPTH": "4"} and made.cluster == "dgx-h100:2"
    assert made.files == {"c.json": '{"tp": 2, "full": true, "nested": {"x": 1}}'}
    absent = plan.make(space, {"tp": 1, "full": False, "way": None, "nic": 25})
    assert absent.words[3:5] == ("--tp", "1") and "--full" not in absent.words
    other = plan.make(space, {"tp": 2, "full": True, "way": "a", "nic": 50})
    assert other.key() != made.key() and other.recording_key() == made.recording_key()
    assert absent.recording_key() != made.recording_key()


def test_the_command_line_overrides_the_command():
    space = parse(PLAIN, command=["other.py", "{batch}"], cluster="p4d")
    assert [w.text for w in space.command] == ["other.py", "{batch}"] and space.cluster_name.text == "p4d"


def test_conditional_parameters():
    space = parse(LAYOUTS)
    for values in Tree(space).walk():
        assert (values["vpp"] is None) == (values["pp"] == 1)
        assert values["tp"] > 1 or values["sp"] is False


@pytest.mark.parametrize("kind", templates.KINDS)
def test_templates_are_spaces(kind):
    space = parse(templates.text(kind))
    listed, complete = configurations(space, 1000)
    assert listed and complete and all(plan.make(space, values).words for values in listed)


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "search").glob("*.toml")), ids=lambda path: path.stem)
def test_examples_are_spaces(path):
    space = Space.load(path)
    listed, complete = configurations(space, 1000)
    assert listed and complete and all(plan.make(space, values).words for values in listed)
