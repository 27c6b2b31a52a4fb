import { saveNote } from '../../unit/standalone/save-note.ts'

/**
 * Saves three notes, and deletes them on failure; with a key a lost step may be repeated; `gated`
 * requires an approval.
 */
export function threeNotes({ keyed, gated }: { keyed: boolean; gated: boolean }): unknown {
  const names = ['one', 'two', 'three']
  return {
    ...saveNote,
    id: 'note.three',
    policy: { ...saveNote.policy, ...(gated ? { needs_approval_if: ['true'] } : {}) },
    plan: {
      budget: { max_cost_usd: 1, max_latency_ms: 60_000 },
      ...(keyed ? { idempotence_key: 'three:{{title}}' } : {}),
      steps: names.map((name) => ({ name, tool: 'notes.save', args: { title: `{{title}} ${name}` } })),
      compensation: names.map((name) => ({
        when: 'partial_failure',
        tool: 'notes.save',
        args: { title: `not {{title}} ${name}` },
        step: name,
      })),
      result_map: { saved: '{{work.steps.three.id}}' },
    },
  }
}
