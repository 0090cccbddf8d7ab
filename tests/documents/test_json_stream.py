"""The pull parser against the standard library's decoder, however the text is cut into chunks."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capr.documents.json_stream import BrokenJsonError, JsonStream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


def stream(text: str, size: int) -> JsonStream:
    return JsonStream(SimpleNamespace(chunks=lambda: (text[i : i + size] for i in range(0, len(text), size))))


def walked(parser: JsonStream):
    """The value that comes next, by walking into every object and list."""
    opening = parser.next()
    if opening == "[":
        return [walked(parser) for _ in parser.walk_elements()]
    if opening == "{":
        return {key: walked(parser) for key in parser.members()}
    return parser.value()


@given(VALUES, st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_any_value_however_it_arrives(value, size, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    for take in (JsonStream.value, walked):
        parser = stream(text, size)
        assert take(parser) == value
        parser.end()


@given(VALUES, st.integers(1, 40), st.data())
def test_a_text_that_is_cut_is_never_taken_for_whole(value, size, data):
    text = json.dumps([value])
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    for take in (JsonStream.value, walked):
        with pytest.raises(BrokenJsonError):
            take(stream(cut, size))


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_line_of_an_error_is_told(size):
    with pytest.raises(BrokenJsonError) as error:
        walked(stream('{\n "a": [1,\n  2,\n  oops]\n}', size))
    assert error.value.line == 4
