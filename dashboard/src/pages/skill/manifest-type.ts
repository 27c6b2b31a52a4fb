/** The parts of a manifest that the page shows. The API checks manifests; all may be missing. */
export type ShownInput = { name: string; type: string; required?: boolean; secret?: boolean; description?: string }
export type ShownStep = {
  name?: string
  tool: string
  args?: Record<string, unknown>
  timeout_ms?: number
  guard?: string
  retry?: { max_attempts: number; backoff_ms?: number }
  step?: string | number
}
export type ShownManifest = Partial<{
  description: string
  scope: string
  compat: Partial<{ env: string[]; toolset: string; repo: string; project: string }>
  signature: Partial<{
    inputs: ShownInput[]
    outputs: ShownInput[]
    blackboard_bindings: { inputs?: Record<string, string>; outputs?: Record<string, string> }
  }>
  preconditions: Partial<{ tools_available: string[]; data_present: string[]; invariants: string[] }>
  plan: Partial<{
    idempotence_key: string
    budget: { max_cost_usd: number; max_latency_ms: number }
    steps: ShownStep[]
    compensation: ShownStep[]
    result_map: Record<string, unknown>
  }>
  effects: Partial<{ writes: string[]; external: string[] }>
  activation: Partial<{
    required_slots: string[]
    goal_labels: string[]
    keywords_any: string[]
    entity_types: string[]
    score_weights: Record<string, number>
    tau: number
    cooldown_s: number
    max_concurrency: number
  }>
  policy: Partial<{
    allow_roles: string[]
    deny_if: string[]
    needs_approval_if: string[]
    approval_within_s: number
    self_approval: boolean
    residency: string[]
    pii: string
  }>
  provenance: Partial<{ mined_from_traces: string[]; support: number; success: number }>
}>
