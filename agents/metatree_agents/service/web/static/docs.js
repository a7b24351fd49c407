// Swagger UI over the description of this server. What was authorized is forgotten with the page.
// It is dark where a class of the document says so; the colours of the page are theme.js's and page.js's.
const html = document.documentElement;
const darkened = matchMedia("(prefers-color-scheme: dark)");
function paint() {
  html.classList.toggle("dark-mode", (html.dataset.theme ?? (darkened.matches ? "dark" : "light")) === "dark");
}
paint();
darkened.addEventListener("change", paint);
new MutationObserver(paint).observe(html, { attributeFilter: ["data-theme"] });

SwaggerUIBundle({
  url: "/openapi.json",
  domNode: document.getElementById("api"),
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: -1,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
});
