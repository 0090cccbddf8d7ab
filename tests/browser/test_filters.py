"""Filters with counts, and the chips that remove them."""

from playwright.sync_api import expect


def test_a_patient_filter_is_set_and_removed(at):
    page = at("q=vancomycin")
    panel = page.get_by_role("complementary", name="Filters")
    panel.get_by_label("Find a patient").fill("p03")
    panel.get_by_label("p03").check()
    chip = page.get_by_role("button", name="Remove the filter Patient: p03")
    expect(chip).to_be_visible()
    expect(page.locator(".hit .patient").first).to_have_text("p03")
    assert set(page.locator(".hit .patient").all_inner_texts()) == {"p03"}
    assert "patient=p03" in page.evaluate("location.hash")
    chip.click()
    expect(chip).to_have_count(0)
    assert "patient=p03" not in page.evaluate("location.hash")


def test_counts_follow_the_other_filters(at):
    page = at("q=pain")
    box = page.locator('[data-filter="type"] li', has_text="Discharge summary")
    before = int(box.locator(".count").inner_text())
    assert before >= 20
    page.locator('[data-filter="date"]').get_by_label("From", exact=True).fill("2025-01-01")
    page.locator('[data-filter="date"]').get_by_label("From", exact=True).press("Tab")
    expect(page.get_by_role("button", name="Remove the filter Date: 2025-01-01 to …")).to_be_visible()
    expect(box.locator(".count")).not_to_have_text(str(before))
    expect(page.locator(".hit time").first).to_be_visible()
    assert min(page.locator(".hit time").all_inner_texts()) >= "2025-01-01"


def test_a_first_day_after_the_last_shows_a_message(at):
    page = at("q=pain&to=2025-01-31")
    days = page.locator('[data-filter="date"]')
    days.get_by_label("From", exact=True).fill("2025-03-01")
    days.get_by_label("From", exact=True).press("Tab")
    message = "From (2025-03-01) is after To (2025-01-31), so no document matches. Swap them, or remove one."
    expect(days.get_by_role("alert")).to_have_text(message)
    expect(page.locator(".state.none .notice").first).to_have_text(message)
    days.get_by_label("From", exact=True).fill("2025-01-01")
    days.get_by_label("From", exact=True).press("Tab")
    expect(page.locator(".hit").first).to_be_visible()
    expect(days.get_by_role("alert")).to_have_count(0)
    expect(at("from=2025-03-01&to=2025-01-31").locator("#results .notice")).to_have_text(message)


def test_a_drag_in_the_histogram_sets_a_range(at):
    page = at("q=pain")
    drawing = page.locator(".histogram")
    expect(drawing).to_be_visible()
    box = drawing.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 20)
    page.mouse.up()
    expect(page.get_by_role("button", name="Remove the filter Date: 20")).to_be_visible()
    begin, end = page.evaluate(
        "[...new URLSearchParams(location.hash.slice(1))].filter(([n]) => n === 'from' || n === 'to').map(([, v]) => v)"
    )
    assert begin < end
    expect(page.locator(".histogram .bar.out").first).to_be_attached()
    expect(page.locator(".hit time").first).to_be_visible()
    assert all(begin <= day <= end for day in page.locator(".hit time").all_inner_texts())


def test_type_and_section(at):
    page = at("q=stroke")
    page.locator('[data-filter="type"]').get_by_label("Discharge summary").check()
    expect(page.get_by_role("button", name="Remove the filter Type: Discharge summary")).to_be_visible()
    page.locator('[data-filter="section"]').get_by_role("button", name="Show 50 of").click()
    page.locator('[data-filter="section"]').get_by_label("family history").check()
    expect(page.get_by_role("button", name="Remove the filter Section: family history")).to_be_visible()
    expect(page.locator(".hit").first).to_contain_text("stroke")
    assert all("family history" in path.lower() for path in page.locator(".hit .facts .path").all_inner_texts())
    page.get_by_role("button", name="Remove all").click()
    expect(page.locator(".chip")).to_have_count(0)


def test_a_list_shows_how_many_values_it_omits(at):
    sections = at("q=pain").locator('[data-filter="section"]')
    sections.get_by_role("button", name="Show 50 of 308").click()
    expect(sections.locator("li")).to_have_count(50)
    expect(sections.get_by_text("258 further values not listed")).to_be_visible()


def test_hide_negated_and_family_history(at):
    page = at("entity=stroke&aspect=")
    page.get_by_label("Hide family history").check()
    expect(page.get_by_role("button", name="Remove the filter Hide family history")).to_be_visible()
    page.get_by_label("Hide negated").check()
    expect(page.get_by_role("button", name="Remove the filter Hide negated")).to_be_visible()
    expect(page.locator(".hit").first).to_be_visible()
    for passage in page.locator(".hit > .passage").all():
        marks = passage.locator(".mention.disease:has(mark.word)")
        assert marks.count() > passage.locator(".mention.disease.family:has(mark.word)").count()
    assert page.evaluate("new URLSearchParams(location.hash.slice(1)).getAll('without')") == ["family", "negated"]


def test_the_focus_stays_on_the_filter(at):
    page = at("q=pain")
    box = page.locator('[data-filter="type"]').get_by_label("Radiology report")
    box.focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Remove the filter Type: Radiology report")).to_be_visible()
    expect(page.locator('[data-filter="type"]').get_by_label("Radiology report")).to_be_focused()


def test_typed_text_stays_when_a_filter_changes(at):
    page = at("q=pain")
    box = page.get_by_label("Question or words")
    box.fill("asthma in the family")
    page.locator('[data-filter="type"]').get_by_label("Radiology report").check()
    chip = page.get_by_role("button", name="Remove the filter Type: Radiology report")
    expect(chip).to_be_visible()
    expect(box).to_have_value("asthma in the family")
    page.get_by_text("Entity and aspect", exact=True).click()
    page.get_by_role("combobox", name="Entity").fill("gou")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Escape")  # the list of completions may cover the chip
    chip.click()
    expect(chip).to_have_count(0)
    expect(page.get_by_role("combobox", name="Entity")).to_have_value("gou")
    page.locator("#home").click()
    expect(page.get_by_role("combobox", name="Entity")).to_have_value("")
    expect(box).to_have_value("")


def test_filters_without_a_query_list_the_reports(at):
    page = at("patient=p03")
    expect(page.get_by_role("heading", name="3 documents")).to_be_visible()
    page.get_by_role("link", name="MRSA tricuspid valve endocarditis").last.click()
    expect(page.locator(".report")).to_be_visible()


def test_the_list_has_as_many_reports_as_the_panel_counts(at):
    page = at("section=allergies")
    expect(page.locator("#results h2")).to_have_text("29 documents")
    expect(page.locator("#filter-body > p").first).to_have_text("29 documents match the filters")
    expect(page.locator(".documents > li")).to_have_count(29)


def test_filters_unfold_on_a_narrow_screen(at):
    page = at("q=pain", viewport={"width": 360, "height": 740})
    fold = page.get_by_role("button", name="Filters", exact=True)
    expect(fold).to_have_attribute("aria-expanded", "false")
    expect(page.get_by_label("Hide negated")).to_be_hidden()
    fold.click()
    page.get_by_label("Hide negated").check()
    expect(page.get_by_role("button", name="Filters (1)")).to_have_attribute("aria-expanded", "true")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
