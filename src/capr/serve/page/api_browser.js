// The API browser: Swagger UI over this server's OpenAPI document, signed in with the token of the page, if any.
import { token } from "./api.js";

addEventListener("DOMContentLoaded", () => {
  const browser = window.SwaggerUIBundle({
    url: "api/openapi.json",
    dom_id: "#browser",
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    validatorUrl: null, // the default sends the document to another site
    onComplete: () => {
      if (token.get()) browser.preauthorizeApiKey("token", token.get());
    },
  });
});
