import { generateText, tool, type LanguageModel } from 'ai'
import { createReflex } from 'reflex-agents/wrap/node'
import { z } from 'zod'

const saved: string[] = []

/** The gate, the log and the runs of this process. `file`: an SQLite file, or `:memory:`. */
export const open = (file: string) =>
  createReflex({
    project: 'notes',
    roles: ['writer'],
    storage: { file },
    tools: {
      'notes.save': tool({
        inputSchema: z.object({ title: z.string() }),
        execute: async ({ title }) => ({ id: `note ${saved.push(title)}` }),
      }),
    },
    skills: [
      {
        id: 'note.save',
        version: '1.0.0',
        owner: 'team-notes',
        description: 'Saves a note',
        signature: { inputs: [{ name: 'title', type: 'string', required: true }], outputs: [{ name: 'id', type: 'string' }] },
        plan: {
          budget: { max_cost_usd: 0.01, max_latency_ms: 5000 },
          steps: [{ name: 'save', tool: 'notes.save', args: { title: '{{title}}' }, timeout_ms: 1000 }],
          result_map: { id: '{{work.steps.save.id}}' },
        },
        activation: { keywords_any: ['note'], score_weights: { keyword_hit: 1 }, tau: 1 },
        policy: { allow_roles: ['writer'] },
      },
    ],
  })

/** Any model of the AI SDK: it proposes the skill, and the gate decides. */
export async function remember(model: LanguageModel, prompt: string, file = 'reflex.db'): Promise<{ text: string; saved: string[] }> {
  const reflex = open(file)
  const { text } = await generateText({ ...reflex.wrap({ model }), prompt })
  return { text, saved }
}
