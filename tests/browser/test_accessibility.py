"""Checks of every view with axe-core, light and dark, wide and narrow, and of the keyboard."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from capr.serve.state import open_state
from capr.serve.tokens import TokenStore

REPORT = "document=p03-2025-02-03-discharge"
VIEWS = {
    "empty": ("", ".examples"),
    "results": ("q=What+was+the+kidney+injury+attributed+to%3F&type=Discharge+summary&without=negated", ".hit"),
    "pair": ("entity=stroke&aspect=family+history", ".hit"),
    "groups": ("q=atrial+fibrillation&group=patient", ".group"),
    "none": ("q=%2Bzyzzyva&patient=p01", ".state.none"),
    "reports": ("patient=p03", ".documents"),
    "report": (f"entity=vancomycin&aspect=medication&{REPORT}&at=2680-3194", ".score-chart"),
    "answer": (f"{REPORT}&ask=What+dose+of+vancomycin+was+she+discharged+on%3F", ".answer-card"),
    "refusal": (f"{REPORT}&ask=What+is+the+name+of+the+parrot%3F", ".refusal"),
    "missing": ("document=no-such-report", ".state.error"),
}
LOOKS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "narrow": {"color_scheme": "light", "viewport": {"width": 360, "height": 740}},
}


def violations(page):
    """Return the serious and critical violations that axe-core finds, with their elements."""
    violations = Axe().run(page).response["violations"]
    return [
        f"{violation['impact']} {violation['id']}: {[node['html'][:160] for node in violation['nodes'][:3]]}"
        for violation in violations
        if violation["impact"] in ("serious", "critical")
    ]


def test_the_check_finds_a_violation(page):
    page.evaluate("document.querySelector('.tagline').style.setProperty('color', '#eee')")
    assert [violation for violation in violations(page) if "color-contrast" in violation]


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("view", VIEWS)
def test_no_serious_violation(at, view, look):
    fragment, selector = VIEWS[view]
    page = at(fragment, **LOOKS[look])
    expect(page.locator(selector).first).to_be_visible()
    if view in ("results", "report"):
        for summary in page.locator("main summary").all():
            if "Outline" not in summary.inner_text():
                summary.click()
    page.wait_for_load_state("networkidle")
    assert violations(page) == []
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("look", LOOKS)
def test_no_serious_violation_in_dialogs_and_lists(at, look):
    page = at("q=gout", **LOOKS[look])
    expect(page.locator(".hit").first).to_be_visible()
    page.get_by_role("button", name="Save search").click()
    page.get_by_role("button", name="Save this search").click()
    expect(page.locator("#saved-list li").first).to_be_visible()
    assert violations(page) == []
    for delete in page.locator("#saved-list button").all():
        delete.click()
    page.keyboard.press("Escape")
    page.get_by_text("Entity and aspect", exact=True).click()
    page.keyboard.type("gou")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    assert violations(page) == []


def test_no_serious_violation_in_the_token_dialog(closed, window):
    for scheme in ("light", "dark"):
        page = window(closed[0].url, "#q=gout", color_scheme=scheme)
        expect(page.get_by_role("dialog")).to_be_visible()
        assert violations(page) == []


@pytest.mark.parametrize("name", ["M" * 32, "Dr. Wilhelmina Ames of Ward Seven"])
def test_a_long_name_fits_a_narrow_screen(another, window, name):
    secrets = []

    def prepare(copy):
        secrets.append(TokenStore(open_state(copy).tokens).create(name)[0])

    server = another("--deidentify", "rules", prepare=prepare)
    for scheme in ("light", "dark"):
        page = window(server.url, "#q=gout", color_scheme=scheme, viewport={"width": 360, "height": 740})
        page.get_by_label("Token", exact=True).fill(secrets[0])
        page.keyboard.press("Enter")
        account = page.get_by_role("button", name=f"{name}: sign out")
        expect(account).to_be_visible()
        expect(page.locator(".hit").first).to_be_visible()
        box = account.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert violations(page) == []


def test_the_skip_link_goes_to_the_results_and_keeps_the_search(at):
    page = at("q=gout")
    expect(page.locator(".hit").first).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    assert page.evaluate("location.hash") == "#q=gout"


def test_the_page_remembers_the_colours(page):
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.locator("#theme").click()
    expect(page.locator("#theme")).to_have_text("Light")
    page.locator("#theme").click()
    expect(page.locator("#theme")).to_have_text("Dark")
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == dark


def test_the_focus_is_visible(at):
    page = at("q=gout")
    expect(page.locator(".hit").first).to_be_visible()
    for _ in range(25):
        page.keyboard.press("Tab")
        style = page.evaluate(
            "(() => { const s = getComputedStyle(document.activeElement); return [document.activeElement.tagName, s.outlineStyle, s.outlineWidth]; })()"
        )
        if style[0] == "INPUT" and page.evaluate("document.activeElement.type") == "radio":
            continue  # its label shows the focus
        assert style[1] != "none", style


def test_the_page_has_a_language_a_title_and_landmarks(page):
    assert page.evaluate("document.documentElement.lang") == "en"
    for role in ("banner", "main", "search"):
        expect(page.get_by_role(role)).to_have_count(1)
