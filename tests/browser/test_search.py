"""The search box: questions, entities and aspects with completions, the history, and the empty page."""

import json
import re
from pathlib import Path

from playwright.sync_api import expect

QUESTION = "What was the kidney injury attributed to?"


def test_a_question_finds_the_passage_and_marks_the_evidence(page):
    page.get_by_label("Question or words").fill(QUESTION)
    page.keyboard.press("Enter")
    first = page.locator(".hit").first
    expect(first).to_contain_text("p03-2025-02-03-discharge")
    expect(first.locator(".evidence.best")).to_contain_text("attributed to vancomycin toxicity")
    expect(first.locator("mark.word").first).to_be_visible()
    expect(page.locator("#live")).to_have_text(re.compile(r"^\d+ passages in \d+ documents? found\.$"))
    assert page.evaluate("location.search") == ""
    assert page.evaluate("new URLSearchParams(location.hash.slice(1)).get('q')") == QUESTION


def test_the_text_on_the_page_is_the_text_of_the_note(at):
    page = at("q=What+was+the+kidney+injury+attributed+to%3F")
    expect(page.locator(".hit").first).to_be_visible()
    with page.expect_response("**/api/search") as answer:
        page.reload()
    hit = answer.value.json()["hits"][0]
    expect(page.locator(".hit").first).to_be_visible()
    assert page.locator(".hit .passage").first.evaluate("one => one.textContent") == hit["text"]


def test_entity_and_aspect_are_completed_by_keyboard(page):
    page.get_by_text("Entity and aspect", exact=True).click()
    entity = page.get_by_role("combobox", name="Entity")
    expect(entity).to_be_focused()
    page.keyboard.type("strok")
    options = page.get_by_role("listbox", name="Entities").get_by_role("option")
    expect(options.first).to_contain_text("stroke")
    expect(options.first).to_contain_text("disease")
    expect(options.first).to_contain_text("MESH:D020521")
    expect(entity).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    expect(entity).to_have_attribute("aria-activedescendant", "entity-option-0")
    page.keyboard.press("Enter")
    expect(entity).to_have_value("stroke")
    expect(entity).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Tab")
    aspect = page.get_by_role("combobox", name="Aspect")
    expect(aspect).to_be_focused()
    page.keyboard.type("family hi")
    expect(page.get_by_role("listbox", name="Aspects").get_by_role("option").first).to_contain_text("family history")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(aspect).to_have_value("family history")
    page.keyboard.press("Enter")
    expect(page.locator(".hit").first).to_contain_text("Mother had a stroke at 80.")
    expect(page.locator(".understood")).to_contain_text("stroke is also")


def test_escape_closes_completions_and_keeps_the_text(page):
    page.get_by_text("Entity and aspect", exact=True).click()
    page.keyboard.type("gou")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_have_count(0)
    expect(page.get_by_role("combobox", name="Entity")).to_have_value("gou")


def test_a_late_reply_never_replaces_a_newer_one(page):
    """The reply to the first letters arrives after the reply to all letters."""

    def delay(route):
        if "prefix=st&" in route.request.url:
            page.wait_for_timeout(600)
        route.continue_()

    page.route("**/api/suggest*", delay)
    page.get_by_text("Entity and aspect", exact=True).click()
    page.keyboard.type("st")
    page.wait_for_timeout(200)
    page.keyboard.type("roke")
    expect(page.get_by_role("option").first).to_contain_text("stroke")
    page.wait_for_timeout(800)
    expect(page.get_by_role("option").first).to_contain_text("stroke")


def test_back_and_forward(page):
    box = page.get_by_label("Question or words")
    expect(page.get_by_role("heading", name="Find the passage that answers")).to_be_visible()
    box.fill("gout")
    page.keyboard.press("Enter")
    expect(page.locator(".hit").first).to_be_visible()
    box.fill("asthma")
    page.keyboard.press("Enter")
    expect(page.locator(".understood")).to_contain_text("asthma")
    page.locator(".hit h3 a").first.click()
    expect(page.locator(".report")).to_be_visible()
    page.go_back()
    expect(page.locator(".hit").first).to_be_visible()
    expect(page.locator(".report")).to_have_count(0)
    expect(box).to_have_value("asthma")
    page.go_back()
    expect(box).to_have_value("gout")
    page.go_back()
    expect(page.get_by_role("heading", name="Find the passage that answers")).to_be_visible()
    page.go_forward()
    expect(box).to_have_value("gout")
    expect(page.locator(".hit").first).to_be_visible()


def test_every_example_of_the_empty_page_has_hits(page):
    count = page.locator(".examples a").count()
    assert count == 3
    for number in range(count):
        page.locator("#home").click()
        page.locator(".examples a").nth(number).click()
        expect(page.locator(".hit").first).to_be_visible()


def test_a_search_without_hits_shows_what_to_do(at):
    page = at("q=%2Bzyzzyva")
    expect(page.get_by_role("heading", name="No passage found")).to_be_visible()
    expect(page.locator(".state.none")).to_contain_text("Try fewer or other words")
    page = at("q=%2Bvancomycin&patient=nobody")
    page.get_by_role("button", name="Search without filters").click()
    expect(page.locator(".hit").first).to_be_visible()


def test_grey_lines_are_visible_while_results_load(page):
    page.route("**/api/search", lambda route: (page.wait_for_timeout(400), route.continue_()))
    page.get_by_label("Question or words").fill("gout")
    page.keyboard.press("Enter")
    expect(page.locator("#results .skeleton")).to_be_visible()
    expect(page.locator("#results")).to_have_attribute("aria-busy", "true")
    expect(page.locator(".hit").first).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)


def test_the_page_and_the_export_have_the_maximum_of_hits(another, window):
    page = window(another("--max-k", "15").url, "#q=pain")
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".hit")).to_have_count(15)
    expect(
        page.get_by_text("These are the best 15 hits, this server's maximum. An export contains the same hits.")
    ).to_be_visible()
    expect(page.get_by_role("button", name="Show more")).to_have_count(0)
    with page.expect_download() as download_info:
        page.get_by_role("button", name="Export as JSON").click()
    hits = json.loads(Path(download_info.value.path()).read_text("utf-8"))["hits"]
    assert [hit["document"] for hit in hits] == page.locator(".hit").evaluate_all(
        "all => all.map((one) => one.dataset.document)"
    )


def test_show_more_adds_hits(at):
    page = at("q=pain")
    expect(page.locator(".hit")).to_have_count(10)
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".hit")).to_have_count(20)
    expect(page.locator(".hit h3 a").nth(10)).to_be_focused()
