"""The view of one report: outline, score chart, mentions and the question box."""

import re
import time

from playwright.sync_api import expect

REPORT = "document=p03-2025-02-03-discharge"
DOSE = "What dose of vancomycin was she discharged on?"


def test_a_hit_opens_its_report_at_the_passage(at):
    page = at("q=What+was+the+kidney+injury+attributed+to%3F")
    page.locator(".hit h3 a").first.click()
    target = page.locator(".report .target").first
    expect(target).to_contain_text("ACUTE KIDNEY INJURY")
    expect(target).to_be_in_viewport()
    expect(page.get_by_role("heading", name="Discharge summary: MRSA tricuspid valve endocarditis")).to_be_focused()
    page.get_by_role("link", name="Back to the results").click()
    expect(page.locator(".hit h3 a").first).to_be_focused()


def test_the_text_is_exact(at):
    page = at(REPORT)
    expect(page.locator(".report")).to_be_visible()
    with page.expect_response(re.compile("/api/documents/p03-2025-02-03-discharge$")) as answer:
        page.reload()
    expect(page.locator(".report")).to_contain_text("DISCHARGE MEDICATIONS")
    assert page.locator(".report").evaluate("one => one.textContent") == answer.value.json()["text"]


def test_the_outline_jumps(at):
    page = at(REPORT)
    page.get_by_role("navigation", name="Outline").get_by_role("button", name="DISCHARGE MEDICATIONS").click()
    heading = page.locator(".report .heading", has_text="DISCHARGE MEDICATIONS")
    expect(heading).to_be_visible()
    expect(heading).to_be_in_viewport()


def test_the_score_chart_jumps_by_click_and_by_keyboard(at):
    page = at(f"entity=vancomycin&aspect=adverse+effects&{REPORT}")
    bar = page.get_by_role("slider", name="Score along the document")
    expect(bar).to_be_visible()
    count = int(bar.get_attribute("aria-valuemax"))
    assert count > 50
    assert page.locator(".score-chart .row").count() == 3
    bar.focus()
    page.keyboard.press("Enter")
    best = page.locator(".report .flash")
    expect(best).to_have_count(1)
    expect(best).to_be_in_viewport()
    expect(bar).to_have_attribute(
        "aria-valuetext", re.compile(r"^Sentence \d+ of \d+: entity [\d.-]+, aspect [\d.-]+, both [\d.-]+")
    )
    page.keyboard.press("End")
    expect(bar).to_have_attribute("aria-valuenow", str(count))
    page.keyboard.press("PageUp")
    assert int(bar.get_attribute("aria-valuenow")) < count
    page.keyboard.press("Home")
    expect(bar).to_have_attribute("aria-valuenow", "1")
    box = bar.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + box["height"] / 2)
    assert abs(int(bar.get_attribute("aria-valuenow")) - count / 2) < 2
    expect(page.locator(".report .flash").last).to_be_in_viewport()


def test_a_report_can_be_read_before_it_is_scored(at):
    page = at("q=vancomycin")
    expect(page.locator(".hit").first).to_be_visible()
    waiting = []
    page.route("**/scores", lambda route: waiting.append(route))
    with page.expect_request("**/scores"):
        page.locator(".hit h3 a").first.click()
    expect(page.locator(".report")).to_be_visible()
    expect(page.get_by_role("slider")).to_have_count(0)
    waiting[0].continue_()
    expect(page.get_by_role("slider")).to_be_visible()
    expect(page.locator(".report .evidence").first).to_be_attached()


def test_a_report_that_cannot_be_scored_is_still_shown(at):
    page = at("q=vancomycin")
    expect(page.locator(".hit").first).to_be_visible()
    problem = {"title": "No vectors", "status": 503, "detail": "there are no vectors", "fix": "capr encode"}
    page.route("**/scores", lambda route: route.fulfill(status=503, json=problem))
    page.locator(".hit h3 a").first.click()
    expect(page.locator("#document .notice")).to_contain_text("there are no vectors")
    expect(page.locator(".report")).to_be_visible()


def test_without_a_query_there_is_no_score_chart(at):
    page = at(REPORT)
    expect(page.locator(".report")).to_be_visible()
    expect(page.locator(".score-chart")).to_have_count(0)


def test_mentions_by_kind(at):
    page = at(REPORT)
    drugs = page.locator(".kinds details", has_text="Drugs")
    drugs.locator("summary").click()
    drugs.get_by_role("button", name="gabapentin").first.click()
    mark = page.locator(".report .mention.flash")
    expect(mark).to_contain_text(re.compile("gabapentin", re.IGNORECASE))
    expect(mark).to_be_in_viewport()


def test_an_answer_is_marked_in_the_report(at):
    page = at(REPORT)
    page.get_by_label("Ask this report", exact=True).fill(DOSE)
    page.keyboard.press("Enter")
    card = page.locator(".answer-card.answer")
    expect(card.locator(".answer-text")).to_contain_text("1,000 mg")
    expect(card.locator(".confidence")).to_contain_text(re.compile(r"\d+% confidence"))
    mark = page.locator(".report .answer-mark.sure")
    expect(mark).to_contain_text("1,000 mg")
    expect(mark).to_be_in_viewport()
    assert "ask=What+dose" in page.evaluate("location.hash")
    page.evaluate("scrollTo(0, 0)")
    card.get_by_role("button", name="Show in the report").click()
    expect(mark).to_be_in_viewport()
    page.go_back()
    expect(card).to_have_count(0)
    expect(page.locator(".report .answer-mark")).to_have_count(0)


def test_not_in_this_report(at):
    page = at(REPORT)
    page.get_by_label("Ask this report", exact=True).fill("What is the name of the neighbour's parrot?")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("heading", name="Not in this report")).to_be_visible()
    expect(page.locator(".answer-card.answer")).to_have_count(0)
    expect(page.locator(".report .answer-mark.sure")).to_have_count(0)
    guess = page.locator(".answer-card.guess")
    if guess.count():
        expect(page.get_by_role("heading", name="Best guess, not an answer")).to_be_visible()


def test_a_question_in_the_address_is_asked(at):
    page = at(f"{REPORT}&ask=What+dose+of+vancomycin+was+she+discharged+on%3F")
    expect(page.locator(".answer-card.answer .answer-text")).to_contain_text("1,000 mg")


def test_a_server_without_a_reader_shows_the_problem(another, window):
    page = window(another("--reader", "none").url, f"#{REPORT}&ask=What+dose%3F")
    box = page.locator(".answers .state.error")
    expect(box).to_be_visible()
    expect(box).to_contain_text("read")
    expect(box).to_contain_text("What to do")
    expect(page.locator(".report")).to_contain_text("DISCHARGE MEDICATIONS")


def test_a_missing_report_shows_a_problem(at):
    page = at("q=gout&document=no-such-report")
    expect(page.locator("#document .state.error")).to_be_visible()
    page.get_by_role("link", name="Back to the results").click()
    expect(page.locator(".hit").first).to_be_visible()


def test_a_very_long_report_opens(at):
    """It has 20,000 lines under one heading, with a mention in each line and an emoji at the beginning."""
    line = "The patient denies chest pain since the last visit and was seen with gout.\n"
    text = "😀\n" + 20_000 * line
    starts = [2 + number * len(line) for number in range(20_000)]
    mentions = [
        {
            "begin": start + 19,
            "end": start + 29,
            "text": "chest pain",
            "kind": "symptom",
            "concept": None,
            "negated": True,
        }
        for start in starts
    ]
    report = {
        "id": "long",
        "title": "Long",
        "metadata": {},
        "text": text,
        "mentions": mentions,
        "passages": [],
        "sections": [{"begin": 0, "end": len(text), "heading": None, "level": 1}],
        "sentences": [[start, start + len(line) - 1] for start in starts],
    }
    page = at("")
    page.route("**/api/documents/long", lambda route: route.fulfill(json=report))
    started = time.monotonic()
    page.evaluate("location.hash = 'document=long'")
    expect(page.locator(".report .mention").nth(19_999)).to_have_text("chest pain")
    assert time.monotonic() - started < 20
    assert page.locator(".report").evaluate("one => one.textContent.length") == len(text) + 1
