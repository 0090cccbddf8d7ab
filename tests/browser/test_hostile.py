"""A note with markup, and characters that JavaScript counts as two."""

import json

from playwright.sync_api import expect

ID = "hostile%2F%3Cb%3Enote%3C%2Fb%3E+%3F%23%25"


def test_markup_in_text_title_and_metadata_is_shown_as_text(at):
    page = at("q=colchicine+knee&patient=p99+%3Ci%3E")
    hit = page.locator(".hit").first
    expect(hit).to_contain_text('<script>document.title = "taken"</script>')
    expect(hit.locator("h3")).to_have_text("<script>alert(1)</script> 😀 Gout clinic")
    expect(hit.locator(".patient")).to_have_text("p99 <i>")
    hit.locator("h3 a").click()
    expect(page.locator(".report")).to_contain_text("<b>Recheck</b> uric acid.")
    assert page.evaluate("document.querySelectorAll('main script, main img, main b, main i').length") == 0
    assert page.title() == "Report · capr"


def test_marks_after_an_emoji_have_the_right_text(at):
    page = at(f"q=gout&document={ID}")
    expect(page.locator(".report")).to_be_visible()
    marks = page.locator(".report .mention").evaluate_all("all => all.map(one => [one.textContent, one.mention.text])")
    assert {"colchicine", "hemochromatosis", "allopurinol"} <= {shown for shown, _ in marks}
    assert all(shown == expected for shown, expected in marks)


def test_marks_of_a_hit_after_an_emoji_have_the_right_text(at):
    page = at("q=colchicine+knee&patient=p99+%3Ci%3E")
    expect(page.locator(".hit mark.word", has_text="colchicine").first).to_have_text("colchicine")
    marks = page.locator(".hit .mention").evaluate_all("all => all.map(one => [one.textContent, one.mention.text])")
    assert marks
    assert all(shown == expected for shown, expected in marks)


def test_an_answer_after_an_emoji_is_marked(at):
    page = at(f"document={ID}&ask=What+dose+of+allopurinol+does+he+take%3F")
    expect(page.locator(".answer-card .answer-text").first).to_contain_text("300 mg")
    expect(page.locator(".report .answer-mark.sure").first).to_have_text(
        page.locator(".answer-card .answer-text").first.inner_text()
    )


def test_offsets_of_the_page_are_those_of_python(page):
    """Every span of a text with characters of one and two units has the same text as in Python."""
    text = "a😀b👩‍⚕️é\u0301\U00010000z"
    slices = [[b, e, text[b:e]] for b in range(len(text) + 1) for e in range(b, len(text) + 1)]
    script = """async (parameters) => {
      const { Text } = await import(new URL("page/offsets.js", location.href).href);
      const [text, slices] = JSON.parse(parameters);
      const converted = new Text(text, 100);
      const wrong = slices.filter(([b, e, expected]) => converted.slice(b + 100, e + 100) !== expected);
      const back = slices.filter(([b]) => converted.offset(converted.unit(b + 100)) !== b + 100);
      return [converted.end, wrong, back];
    }"""
    end, wrong, back = page.evaluate(script, json.dumps([text, slices]))
    assert (end, wrong, back) == (100 + len(text), [], [])


def test_a_hostile_address_is_harmless(at):
    page = at("q=%3Cimg+src%3Dx%3E&k=1e9&at=x-y&group=%3Cb%3E&from=never&without=%00&zzz=1")
    expect(page.locator("#results .state, #results .hit").first).to_be_visible()
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
