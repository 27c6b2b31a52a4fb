/* global SwaggerUIBundle */
// The page has no inline script, so that its policy can forbid all of them.
SwaggerUIBundle({
  url: '/v1/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  persistAuthorization: false,
  showExtensions: true,
  tryItOutEnabled: true,
  // A validator on another host would be sent the address of this deployment.
  validatorUrl: null,
})
