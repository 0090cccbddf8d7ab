"""Views: a new view is a file and a line in views.js, and has a tab."""

import re
from importlib.resources import files

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

PROBE = """
import { el } from "./dom.js";
import { go } from "./state.js";

export const name = "probe";
export const label = "Probe";
export const style = "probe.css";
export const parameters = { single: ["depth"], lists: ["part"] };
export const element = el("div", { id: name, hidden: true });
export const matches = (state) => state.view === name;
export const title = (state) => `Probe ${state.depth}`.trim();
let calls = [];
export function show(state, before) {
  calls.push(before ? `from ${before.q || before.document}` : "again");
  element.replaceChildren(
    el("h2", {}, `depth ${state.depth || "none"}, parts ${state.part.join(" and ") || "none"}, of ${state.q || "nothing"}`),
    el("p", {}, calls.join(", ")),
    el("button", { type: "button", onclick: () => go({ depth: "3", part: ["a", "b"] }) }, "Deeper"),
  );
}
export const hide = () => calls.push("hidden");
export const forget = () => (calls = []);
"""
QUERY = "q=What+was+the+kidney+injury+attributed+to%3F"


@pytest.fixture
def tabbed(at):
    """Return a function that opens the page with a new view: a file and a line in views.js."""
    views = files("capr.serve").joinpath("page", "views.js").read_text("utf-8")
    extended_views = views + 'export * as probe from "./probe.js";\n'

    def open_page(fragment=""):
        page = at(fragment)
        contents = {"views.js": extended_views, "probe.js": PROBE, "probe.css": "#probe h2 { letter-spacing: 3px; }"}

        def fulfill(route):
            name = route.request.url.rpartition("/")[2]
            kind = "text/css" if name.endswith(".css") else "text/javascript"
            route.fulfill(body=contents[name], content_type=kind)

        for name in contents:
            page.route(f"**/page/{name}", fulfill)
        page.reload()
        return page

    return open_page


def tab(page, name):
    return page.get_by_role("navigation", name="Views").get_by_role("link", name=name)


def visible_views(page):
    return page.evaluate(
        "[...document.querySelectorAll('main > div')].filter((one) => !one.hidden).map((one) => one.id)"
    )


def test_a_single_view_with_a_label_has_no_tabs(at):
    page = at("")
    expect(page.locator(".examples")).to_be_visible()
    expect(page.locator("#tabs")).to_be_hidden()
    assert visible_views(page) == ["results"]


def test_a_view_is_routed_and_has_a_tab(tabbed):
    page = tabbed(QUERY)
    expect(page.locator(".hit").first).to_be_visible()
    expect(tab(page, "Search")).to_have_attribute("aria-current", "page")
    assert not tab(page, "Probe").get_attribute("aria-current")
    tab(page, "Probe").click()
    heading = page.locator("#probe h2")
    expect(heading).to_have_text("depth none, parts none, of What was the kidney injury attributed to?")
    expect(heading).to_have_css("letter-spacing", "3px")
    expect(tab(page, "Probe")).to_have_attribute("aria-current", "page")
    expect(page.locator("#filters")).to_be_hidden()
    expect(page).to_have_title("Probe · capr")
    assert visible_views(page) == ["probe"]
    page.get_by_role("button", name="Deeper").click()
    expect(heading).to_contain_text("depth 3, parts a and b")
    expect(page).to_have_title("Probe 3 · capr")
    assert page.evaluate("location.hash").endswith("&view=probe&depth=3&part=a&part=b")
    page.go_back()
    expect(heading).to_contain_text("depth none, parts none")
    expect(page.locator("#probe p")).to_have_text("from What was the kidney injury attributed to?, again, again")
    page.go_back()
    expect(page.locator(".hit").first).to_be_visible()
    expect(page).to_have_title("Results · capr")
    assert visible_views(page) == ["results"]


def test_an_address_of_a_view_opens_it(tabbed):
    page = tabbed("view=probe&depth=7&part=x")
    expect(page.locator("#probe h2")).to_have_text("depth 7, parts x, of nothing")
    page.reload()
    expect(page.locator("#probe h2")).to_have_text("depth 7, parts x, of nothing")


def test_a_search_leaves_the_view(tabbed):
    page = tabbed("view=probe&depth=7&part=x")
    page.get_by_label("Question or words").fill("gout")
    page.keyboard.press("Enter")
    expect(page.locator(".hit").first).to_be_visible()
    assert page.evaluate("location.hash") == "#q=gout"
    page.locator(".hit h3 a").first.click()
    expect(page.locator(".report")).to_be_visible()
    assert visible_views(page) == ["document"]
    assert page.locator("#tabs [aria-current]").count() == 0
    tab(page, "Probe").click()
    assert page.evaluate("location.hash") == "#q=gout&view=probe"
    expect(page.locator("#probe h2")).to_have_text("depth none, parts none, of gout")


def test_a_tab_by_keyboard(tabbed):
    page = tabbed(QUERY)
    expect(page.locator(".hit").first).to_be_visible()
    page.locator("#account, #theme").last.focus()
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Probe":
            break
    expect(tab(page, "Probe")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#probe h2")).to_be_visible()
    expect(tab(page, "Probe")).to_be_focused()


def test_results_are_found_where_they_were_left(tabbed):
    page = tabbed(QUERY)
    expect(page.locator(".hit").nth(9)).to_be_visible()
    page.evaluate("scrollTo(0, 700)")
    page.evaluate("location.hash += '&view=probe'")
    expect(page.locator("#probe h2")).to_be_visible()
    assert page.evaluate("scrollY") < 700
    page.go_back()
    expect(page.locator(".hit").first).to_be_attached()
    page.wait_for_function("scrollY === 700")


def test_retrying_makes_a_view_forget(tabbed):
    page = tabbed("view=probe")
    expect(page.locator("#probe p")).to_have_text("again")
    page.route("**/health", lambda route: route.abort())
    page.route("**/api/**", lambda route: route.abort())
    page.get_by_label("Question or words").fill("gout")
    page.keyboard.press("Enter")
    expect(page.locator("#banner")).to_be_visible()
    tab(page, "Probe").click()
    expect(page.locator("#probe p")).to_have_text("again, hidden, from gout")
    page.locator("#banner").get_by_role("button", name="Retry").click()
    expect(page.locator("#probe p")).to_have_text("again")


def test_a_view_cannot_declare_a_parameter_of_another(at):
    page = at("")
    expect(page.locator(".examples")).to_be_visible()
    message = page.evaluate(
        "import('./page/state.js').then((state) => { try { state.declare({ single: ['q', 'at'] }); return ''; }"
        " catch (error) { return error.message; } })"
    )
    assert re.fullmatch(r"The address already has q, at\. Fix: choose other names .*", message)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_tabs_are_accessible(tabbed, scheme):
    page = tabbed(QUERY)
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    expect(page.locator(".hit").first).to_be_visible()
    violations = Axe().run(page, context="#tabs").response["violations"]
    assert violations == []
