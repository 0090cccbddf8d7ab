// The views of the page, one line each. The page shows the view that matches the address; at most one does.
//
// A view is a module that exports
//   name        the name of the view, which is also the id of its element and the value of `view` in the address
//   label       the label of its tab; optional. Tabs have the order of the names below, with the home view first
//   style       the name of its style sheet, if index.html does not link it
//   parameters  its own parameters of the address: { single: [names], lists: [names] }
//   element     the element of the view, which main.js inserts, shows and hides
//   matches(state)       returns whether the view shows this state; the home view has none, and shows all other states
//   title(state)         returns the title of the window before " · capr"; empty for none
//   show(state, before)  shows the state; `before` is the state of the previous view, or null
//   hide()               runs when another view replaces this one
//   forget()             drops its data, so that the next `show` loads again

export * as document from "./document.js";
export * as results from "./results.js";
