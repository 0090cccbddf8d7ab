"""Hits: marks, neighbours, groups, copies, exports, judgements and saved searches."""

import csv
import io
import json
from pathlib import Path

from playwright.sync_api import expect

PAIR = "entity=stroke&aspect=family+history"


def test_a_negated_mention_looks_negated_and_shows_the_cue(at):
    page = at(PAIR)
    mention = page.locator(".hit .mention.negated").first
    expect(mention).to_be_visible()
    assert (
        mention.locator(".mention-text").evaluate("one => getComputedStyle(one).textDecorationLine") == "line-through"
    )
    mention.hover()
    tip = page.get_by_role("tooltip")
    expect(tip).to_contain_text("negated, by “No")
    page.mouse.move(0, 0)
    expect(tip).to_be_hidden()


def test_mentions_are_one_tab_stop_with_arrow_keys(at):
    page = at(PAIR)
    mentions = page.locator(".hit").first.locator(".passage .mention[role=button]")
    expect(mentions.first).to_have_attribute("tabindex", "0")
    mentions.first.focus()
    expect(page.get_by_role("tooltip")).to_contain_text("of a relative, by “Mother”")
    page.keyboard.press("ArrowRight")
    expect(mentions.nth(1)).to_be_focused()
    expect(mentions.first).to_have_attribute("tabindex", "-1")
    expect(page.get_by_role("tooltip")).to_contain_text("atrial fibrillation (MESH:D001281)")
    page.keyboard.press("Escape")
    expect(page.get_by_role("tooltip")).to_have_count(0)


def test_a_hit_shows_its_stages(at):
    page = at(PAIR)
    first = page.locator(".hit").first
    first.get_by_text("Why this rank").click()
    for stage in ("Words", "Meaning", "Fusion", "Ranker"):
        expect(
            first.locator(".why").get_by_role("row").filter(has=page.get_by_role("rowheader", name=stage))
        ).to_contain_text("rank")


def test_next_and_previous_passages_appear_in_the_hit(at):
    page = at(PAIR)
    first = page.locator(".hit").first
    first.get_by_role("button", name="Show the previous passage").click()
    expect(first.locator(".before .neighbour")).to_contain_text("SOCIAL HISTORY")
    first.get_by_role("button", name="Show the next passage").click()
    expect(first.locator(".after .neighbour").first).to_contain_text("PHYSICAL EXAM")
    first.get_by_role("button", name="Show the next passage").click()
    expect(first.locator(".after .neighbour")).to_have_count(2)


def test_the_first_passage_has_no_previous_one(at):
    page = at("q=%22Admission+Date%22&patient=p03")
    first = page.locator(".hit", has_text="Admission Date").first
    expect(first.get_by_role("button", name="Show the previous passage")).to_be_disabled()


def test_grouped_by_patient(at):
    page = at("q=atrial+fibrillation")
    page.get_by_label("List by").select_option("patient")
    expect(page.locator(".group").first).to_be_visible()
    names = page.locator(".group-name").all_inner_texts()
    assert len(names) == len(set(names)) >= 5
    assert "group=patient" in page.evaluate("location.hash")
    further = page.locator(".others > summary").first
    further.click()
    expect(page.locator(".others .hit").first).to_be_visible()


def test_a_copy_includes_the_citation(at):
    page = at(PAIR)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(".hit").first.get_by_role("button", name="Copy the passage with its citation").click()
    expect(page.locator("#toast")).to_contain_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("FAMILY HISTORY: \nMother had a stroke at 80.")
    assert copied.endswith(
        "p05, Discharge summary, 2025-09-11, FAMILY HISTORY (p05-2025-09-11-discharge, characters 1824 to 1941)"
    )


def test_copying_works_without_tls(at):
    """Without TLS, browsers have no clipboard API, so the page copies a selection."""
    page = at(PAIR)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.locator(".hit").first.get_by_role("button", name="Copy the passage with its citation").click()
    expect(page.locator("#toast")).to_contain_text("Copied")


def test_export_as_csv_and_json(at):
    page = at(f"{PAIR}&patient=p05")
    for format in ("CSV", "JSON"):
        with page.expect_download() as download_info:
            page.get_by_role("button", name=f"Export as {format}").click()
        download = download_info.value
        assert download.suggested_filename.endswith(format.lower())
        text = Path(download.path()).read_text("utf-8-sig")
        if format == "CSV":
            rows = list(csv.DictReader(io.StringIO(text)))
            assert rows[0]["document"] == "p05-2025-09-11-discharge"
        else:
            assert json.loads(text)["hits"][0]["document"] == "p05-2025-09-11-discharge"


def test_judgements_are_saved_and_withdrawn(at):
    page = at(PAIR)
    first = page.locator(".hit").first
    up = first.get_by_role("button", name="This passage answers", exact=True)
    down = first.get_by_role("button", name="This passage does not answer")
    with page.expect_request("**/api/feedback") as request_info:
        up.click()
    body = request_info.value.post_data_json
    assert (body["entity"], body["aspect"], body["answers"]) == ("stroke", "family history", True)
    assert (body["document"], body["begin"], body["end"]) == ("p05-2025-09-11-discharge", 1824, 1941)
    expect(up).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(up).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".thumb[aria-pressed=true]")).to_have_count(1)
    down.click()
    expect(down).to_have_attribute("aria-pressed", "true")
    expect(up).to_have_attribute("aria-pressed", "false")
    down.click()
    expect(page.locator("#toast")).to_have_text("Withdrawn.")
    expect(down).to_have_attribute("aria-pressed", "false")
    page.reload()
    expect(first).to_be_visible()
    expect(page.locator(".thumb[aria-pressed=true]")).to_have_count(0)


def test_a_saved_search_is_opened_and_deleted(at):
    page = at(f"{PAIR}&group=patient")
    expect(page.locator(".hit").first).to_be_visible()
    page.get_by_role("button", name="Save search").click()
    dialog = page.get_by_role("dialog", name="Saved searches")
    dialog.get_by_label("Name of this search").fill("Strokes in families")
    dialog.get_by_role("button", name="Save this search").click()
    link = dialog.get_by_role("link", name="Strokes in families")
    expect(link).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("#home").click()
    expect(page.locator(".examples")).to_be_visible()
    page.get_by_role("button", name="Saved searches").click()
    link.click()
    expect(page.locator(".group").first).to_be_visible()
    expect(page.get_by_role("combobox", name="Entity")).to_have_value("stroke")
    page.get_by_role("button", name="Saved searches").click()
    dialog.get_by_role("button", name="Delete Strokes in families").click()
    expect(link).to_have_count(0)


def test_the_patient_of_a_hit_sets_a_filter(at):
    page = at(PAIR)
    page.locator(".hit").first.get_by_role("button", name="Patient p05").click()
    expect(page.get_by_role("button", name="Remove the filter Patient: p05")).to_be_visible()
