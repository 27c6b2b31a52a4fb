/** Scopes whose names begin so ask the control plane of the tests. */
export const CONTROLLED = 'test/controlled'
export const CONTROL_HOST = 'control.example.com'
export const controlPlaneVariables = {
  REFLEX_CONTROL_PLANE_URL: `https://${CONTROL_HOST}`,
  REFLEX_CONTROL_PLANE_KEY: 'key-of-the-control-plane',
  REFLEX_CONTROL_PLANE_APPROVAL: 'never',
}
/** Scopes whose deployment limits what comes from there. */
export const LIMITED = 'test/controlled-limited'
export const limits = {
  REFLEX_CONTROL_PLANE_APPROVAL: 'effects',
  REFLEX_CONTROL_PLANE_TOOLS: 'act, undo_*, http.*',
  REFLEX_CONTROL_PLANE_SCOPES: `${LIMITED}/*,${LIMITED}-too/*`,
}
