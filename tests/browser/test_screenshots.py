"""Pictures of every view for the docs, light, dark and narrow; `make screenshots` redraws them."""

import io
import os
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import expect

FOLDER = os.environ.get("CAPR_SCREENSHOTS", "")
LARGEST = 200_000  # bytes of a picture
COLOURS = 200  # enough for text on a plain background, at a third of the size
REPORT = "document=p03-2025-02-03-discharge"
VIEWS = {
    "start": ("", ".examples"),
    "question": ("q=What+was+the+kidney+injury+attributed+to%3F", ".hit"),
    "pair": ("entity=stroke&aspect=family+history&without=negated", ".hit"),
    "patients": ("q=atrial+fibrillation&group=patient&type=Discharge+summary&without=negated&without=family", ".group"),
    "report": (f"entity=vancomycin&aspect=adverse+effects&{REPORT}&at=2680-3194", ".score-chart"),
    "answer": (f"q=vancomycin&{REPORT}&ask=What+dose+of+vancomycin+was+she+discharged+on%3F", ".answer-card"),
    "refusal": (f"q=vancomycin&{REPORT}&ask=What+is+the+name+of+the+parrot%3F", ".refusal"),
    "nothing": ("q=%2Bzyzzyva&patient=p01", ".state.none"),
}
LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 800}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 800}},
    "narrow": {"color_scheme": "light", "viewport": {"width": 360, "height": 740}},
}


def draw(page, name):
    file = Path(FOLDER) / f"{name}.png"
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)
    assert file.stat().st_size < LARGEST


@pytest.mark.skipif(not FOLDER, reason="CAPR_SCREENSHOTS does not name a folder")
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("view", VIEWS)
def test_draw(at, view, look):
    fragment, selector = VIEWS[view]
    page = at(fragment, **LOOKS[look])
    expect(page.locator(selector).first).to_be_visible()
    page.wait_for_load_state("networkidle")
    draw(page, f"{view}-{look}")


@pytest.mark.skipif(not FOLDER, reason="CAPR_SCREENSHOTS does not name a folder")
@pytest.mark.parametrize("look", LOOKS)
def test_draw_the_dialogs(at, closed, window, look):
    page = at("", **LOOKS[look])
    page.get_by_text("Entity and aspect", exact=True).click()
    page.keyboard.type("cardiom")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    draw(page, f"completion-{look}")
    page = window(closed[0].url, "#q=gout", **LOOKS[look])
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_label("Token", exact=True).fill("capr_wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#token-error")).not_to_be_empty()
    draw(page, f"token-{look}")


@pytest.mark.skipif(not FOLDER, reason="CAPR_SCREENSHOTS does not name a folder")
@pytest.mark.parametrize("look", LOOKS)
def test_draw_the_reasons(at, look):
    page = at("entity=stroke&aspect=family+history&patient=p05", **LOOKS[look])
    page.get_by_text("What the marks mean").click()
    first = page.locator(".hit").first
    first.get_by_text("Why this rank").click()
    first.get_by_role("button", name="Show the next passage").click()
    expect(first.locator(".neighbour")).to_be_visible()
    first.locator("header").scroll_into_view_if_needed()
    if look == "narrow":
        first.evaluate("one => one.scrollIntoView()")
    page.wait_for_load_state("networkidle")
    first.locator(".mention.negated").first.hover()
    expect(page.get_by_role("tooltip")).to_be_visible()
    draw(page, f"reasons-{look}")
