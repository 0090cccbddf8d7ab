import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from capr.annotate.abbreviations import definitions


def long_forms(text: str) -> dict[str, str]:
    return {short: long.of(text) for short, long in definitions(text)}


@pytest.mark.parametrize(
    ("text", "short", "long"),
    [
        ("He has acute kidney injury (AKI).", "AKI", "acute kidney injury"),
        ("transient ischaemic attacks (TIAs)", "TIA", "transient ischaemic attacks"),
        ("Physical examination (PE) was normal", "PE", "Physical examination"),
        ("a heat shock transcription factor (HSF)", "HSF", "heat shock transcription factor"),
        ("nausea and vomiting (N/V)", "N/V", "nausea and vomiting"),
        ("acute kidney\ninjury (AKI)", "AKI", "acute kidney\ninjury"),
        ("😀 acute kidney injury (AKI)", "AKI", "acute kidney injury"),
        ("İİ acute kidney injury (AKI)", "AKI", "acute kidney injury"),
        ("acute kidney injury ( AKI )", "AKI", "acute kidney injury"),
        ("acute kidney injury (AKI; stage 2)", "AKI", "acute kidney injury"),
        ("AKI (acute kidney injury)", "AKI", "acute kidney injury"),
    ],
)
def test_definition_is_found(text, short, long):
    assert long_forms(text) == {short: long}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(AKI)",
        "seen by Dr. Bell (MD)",
        "acute kidney injury (see below)",
        "acute kidney injury (aki)",
        "acute. Kidney injury (AKI)",
        "acute\n\nkidney injury (AKI)",
        "stomach (AKI)",
        "blood pressure 120 (H)",
        "weight (70)",
        "a " + "word " * 30 + "kidney injury (AKI)",
    ],
)
def test_other_brackets_define_nothing(text):
    assert long_forms(text) == {}


def test_every_definition_is_found():
    text = "Deep vein thrombosis (DVT) and pulmonary embolism (PE)."
    assert long_forms(text) == {"DVT": "Deep vein thrombosis", "PE": "pulmonary embolism"}


@given(st.text(st.sampled_from("aAkKiI ().\n-İß😀é/&2")) | st.text())
@example("(A/)")
@example("A B (AB)")
@example("ß (SS)")
def test_spans_are_valid_in_any_text(text):
    for short, long in definitions(text):
        assert 0 <= long.begin < long.end <= len(text)
        assert long.of(text) == long.of(text).strip()
        assert f"({short}" in text[long.end :]
        assert long.of(text)[0].lower() == short[0].lower()
