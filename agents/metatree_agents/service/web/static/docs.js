// Swagger UI over the description of this server. What was authorized is forgotten with the page.
SwaggerUIBundle({
  url: "/openapi.json",
  domNode: document.getElementById("api"),
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: -1,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
});
