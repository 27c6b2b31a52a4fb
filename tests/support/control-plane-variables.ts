/** Scopes whose names begin so ask the control plane of the tests. */
export const CONTROLLED = 'test/controlled'
export const CONTROL_HOST = 'control.example.com'
export const controlPlaneVariables = {
  REFLEX_CONTROL_PLANE_URL: `https://${CONTROL_HOST}`,
  REFLEX_CONTROL_PLANE_KEY: 'key-of-the-control-plane',
}
