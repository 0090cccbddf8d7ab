// Light, dark, or as the system has it. A classic script in the head, so that no page is painted in the wrong colours.
"use strict";
(() => {
  const KEY = "capr-theme";
  const NAMES = { "": "Auto", light: "Light", dark: "Dark" };
  const kept = () => {
    try {
      return localStorage.getItem(KEY) ?? "";
    } catch {
      return "";
    }
  };
  const apply = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  };
  apply(kept());
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = (theme) => {
      button.textContent = NAMES[theme];
      button.setAttribute("aria-label", `Colours: ${theme || "automatic"}. Change`);
    };
    let theme = kept();
    label(theme);
    button.addEventListener("click", () => {
      const order = Object.keys(NAMES);
      theme = order[(order.indexOf(theme) + 1) % order.length];
      try {
        localStorage.setItem(KEY, theme);
      } catch {
        /* private window: it holds until the page is closed */
      }
      apply(theme);
      label(theme);
    });
  });
})();
