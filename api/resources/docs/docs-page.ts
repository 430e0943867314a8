/** Everything comes from this service, and nothing inline is run: a pasted key stays between the page and the API. */
export const DOCS_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Relative addresses throughout, so that it works behind any host and prefix. */
export function renderDocs(title: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" type="image/png" href="favicon-32x32.png">
<link rel="stylesheet" href="swagger-ui.css">
</head>
<body>
<noscript>This page needs JavaScript; the document itself is at <a href="../openapi.json">openapi.json</a>.</noscript>
<div id="swagger-ui"></div>
<script src="swagger-ui-bundle.js"></script>
<script src="initializer.js"></script>
</body>
</html>
`;
}

/** `validatorUrl`: Swagger UI would otherwise send the document to a validator on the Internet. */
export const DOCS_INITIALIZER = `SwaggerUIBundle({
  url: '../openapi.json',
  dom_id: '#swagger-ui',
  presets: [SwaggerUIBundle.presets.apis],
  layout: 'BaseLayout',
  validatorUrl: null,
  deepLinking: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  persistAuthorization: false,
});
`;
