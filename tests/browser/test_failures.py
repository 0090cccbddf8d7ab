"""A wrong token, a server that dies, and a busy server."""

import re
import signal

from playwright.sync_api import expect


def test_a_wrong_token_and_then_the_right_one(closed, window):
    server, token = closed
    page = window(server.url, "#q=gout")
    dialog = page.get_by_role("dialog", name="This library needs a token")
    expect(dialog).to_be_visible()
    page.get_by_label("Token", exact=True).fill("capr_wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#token-error")).not_to_be_empty()
    expect(dialog).to_be_visible()
    page.get_by_label("Token", exact=True).fill(token)
    dialog.get_by_role("button", name="Open").click()
    expect(page.locator(".hit").first).to_be_visible()
    expect(page.locator("#account")).to_contain_text("sign out")
    assert token in page.evaluate("JSON.stringify(sessionStorage)")
    assert token not in page.evaluate("JSON.stringify(localStorage) + document.cookie + location.href")
    page.reload()
    expect(page.locator(".hit").first).to_be_visible()
    page.locator("#account").click()
    expect(dialog).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


def test_without_a_token_the_page_shows_no_hits(closed, window):
    server, _ = closed
    page = window(server.url, "#q=gout")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#results .state.error")).to_be_visible()
    expect(page.locator(".hit")).to_have_count(0)


def test_a_killed_server_shows_the_banner(another, window):
    server = another()
    page = window(server.url, "#q=gout")
    expect(page.locator(".hit").first).to_be_visible()
    server.stop(signal.SIGKILL)
    page.route("**/health", lambda route: route.abort())  # so that only the button hides the banner
    page.get_by_label("Question or words").fill("asthma")
    page.keyboard.press("Enter")
    banner = page.locator("#banner")
    expect(banner).to_contain_text("The server cannot be reached")
    expect(page.locator("#results .state.error")).to_contain_text("What to do")
    server.start()
    banner.get_by_role("button", name="Retry").click()
    expect(page.locator(".understood")).to_contain_text("asthma")
    expect(banner).to_be_hidden()


def test_the_banner_disappears_when_the_server_is_back(another, window):
    server = another()
    page = window(server.url, "#q=gout")
    expect(page.locator(".hit").first).to_be_visible()
    server.stop(signal.SIGKILL)
    page.locator(".hit").first.get_by_role("button", name="This passage answers", exact=True).click()
    expect(page.locator("#toast")).to_contain_text("Not saved")
    expect(page.locator("#banner")).to_be_visible()
    page.get_by_label("Question or words").fill("asthma")
    page.keyboard.press("Enter")
    expect(page.locator("#results .state.error")).to_be_visible()
    server.start()
    expect(page.locator("#banner")).to_be_hidden()
    expect(page.locator(".understood")).to_contain_text("asthma")


def test_the_page_shows_that_texts_are_deidentified(another, window):
    page = window(another("--deidentify", "rules").url, "#q=gout")
    expect(page.get_by_text("de-identified")).to_be_visible()
    expect(page.locator(".hit").first).to_be_visible()


def test_a_search_can_be_repeated_after_a_busy_reply(at):
    page = at("")
    busy = {"title": "Too much to do", "status": 503, "detail": "64 requests wait", "fix": "try again in a moment"}
    state = {"replied": False}

    def answer(route):
        if state["replied"]:
            return route.continue_()
        state["replied"] = True
        return route.fulfill(
            status=503, json=busy, headers={"Retry-After": "2"}, content_type="application/problem+json"
        )

    page.route("**/api/search", answer)
    page.get_by_label("Question or words").fill("gout")
    page.keyboard.press("Enter")
    expect(page.locator("#results .state.error")).to_contain_text(
        re.compile("64 requests wait.*2 seconds.*try again", re.DOTALL)
    )
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".hit").first).to_be_visible()
    state["replied"] = False
    page.get_by_label("Question or words").fill("asthma")
    page.keyboard.press("Enter")
    expect(page.locator("#results .state.error")).to_be_visible()
    page.keyboard.press("Enter")  # the same search again
    expect(page.locator(".hit").first).to_be_visible()
