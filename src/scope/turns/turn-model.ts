import type { LanguageModelV4 } from '@ai-sdk/provider'
import { wrapLanguageModel } from 'ai'
import type { Settings } from '../../contract/settings/settings.ts'
import { modelForSession } from '../../skills/model/model.ts'
import { countedModel, type CountedParts } from './metered-model.ts'
import type { Skills } from '../skills/sessions.ts'
import type { Turn } from './turn.ts'

export type ModelParts = CountedParts & { settings: () => Settings; skills: Skills }

/**
 * A turn's model: it stops with the turn, is metered, and can propose skills, which the gate
 * decides.
 */
export function turnModel(parts: ModelParts, turn: Turn): LanguageModelV4 {
  const counted = countedModel(parts, turn)
  let skilled: Promise<LanguageModelV4> | undefined
  const ready = () => (skilled ??= withSkills(parts, turn, counted))
  return wrapLanguageModel({
    model: counted,
    middleware: {
      specificationVersion: 'v4',
      wrapGenerate: async ({ params }) => (await ready()).doGenerate(params),
      wrapStream: async ({ params }) => (await ready()).doStream(params),
    },
  })
}

/** Opens the skill session with the first model call, so a turn without one has none. */
async function withSkills({ skills, settings }: ModelParts, turn: Turn, model: LanguageModelV4): Promise<LanguageModelV4> {
  if (!(await skills.any())) return model
  const { head, turn_id, earlier_turns, signal, acts, claimed } = turn
  const events = claimed.map(({ event }) => event)
  const session = await skills.open({ head, causes: [turn_id, ...earlier_turns], signal, model, events, acts })
  return modelForSession(model, { session, roles: skills.agentRoles, protocol: settings().skill_protocol })
}
