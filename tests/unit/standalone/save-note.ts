/** A skill that saves a note in one step. */
export const saveNote = {
  id: 'note.save',
  version: '1.0.0',
  owner: 'team-notes',
  description: 'Saves a note',
  signature: {
    inputs: [{ name: 'title', type: 'string', required: true }],
    outputs: [{ name: 'saved', type: 'string' }],
    blackboard_bindings: { outputs: { saved: 'work.saved' } },
  },
  plan: {
    budget: { max_cost_usd: 1, max_latency_ms: 10_000 },
    steps: [{ name: 'save', tool: 'notes.save', args: { title: '{{title}}' }, timeout_ms: 1000 }],
    result_map: { saved: '{{work.steps.save.id}}' },
  },
  effects: { writes: ['work.saved'] },
  activation: { keywords_any: ['note'], score_weights: { keyword_hit: 1 }, tau: 1, max_concurrency: 5 },
  policy: { allow_roles: ['writer'] },
}
