"""The pull parser agrees with the standard library's decoder for chunks of any size."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capr.documents.json_stream import BrokenJsonError, JsonStream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(), values, max_size=4),
)


def json_stream(text: str, size: int) -> JsonStream:
    return JsonStream(SimpleNamespace(chunks=lambda: (text[i : i + size] for i in range(0, len(text), size))))


def walk(parser: JsonStream):
    """Decode the next value by walking into every object and list."""
    opening = parser.next()
    if opening == "[":
        return [walk(parser) for _ in parser.walk_elements()]
    if opening == "{":
        return {key: walk(parser) for key in parser.members()}
    return parser.value()


@given(VALUES, st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_any_value_is_decoded_from_chunks_of_any_size(value, size, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    for decode in (JsonStream.value, walk):
        parser = json_stream(text, size)
        assert decode(parser) == value
        parser.end()


@given(VALUES, st.integers(1, 40), st.data())
def test_a_truncated_text_is_always_an_error(value, size, data):
    text = json.dumps([value])
    truncated_text = text[: data.draw(st.integers(0, len(text) - 1))]
    for decode in (JsonStream.value, walk):
        with pytest.raises(BrokenJsonError):
            decode(json_stream(truncated_text, size))


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_an_error_has_its_line(size):
    with pytest.raises(BrokenJsonError) as error:
        walk(json_stream('{\n "a": [1,\n  2,\n  oops]\n}', size))
    assert error.value.line == 4
