"""The API browser at /docs."""


def test_tries_a_request_without_asking_another_site(page, served):
    elsewhere, errors = [], []
    page.on("request", lambda request: request.url.startswith(("data:", served.url)) or elsewhere.append(request.url))
    page.on("console", lambda message: message.type == "error" and errors.append(message.text))
    page.goto(f"{served.url}docs")
    page.get_by_text("Find passages").click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()
    page.get_by_text("Response headers").wait_for()
    assert "spironolactone" in page.locator(".live-responses-table").inner_text()
    assert elsewhere == []
    assert errors == []
