import type { LanguageModelV4 } from '@ai-sdk/provider'
import { type LanguageModel, ToolLoopAgent, type ToolLoopAgentSettings, type ToolSet } from 'ai'
import { languageModel } from '../skills/model/language-model.ts'
import { markWrapped, refuseWrapped } from '../skills/model/wrapped.ts'

type AgentTurn = { model: (model: LanguageModelV4) => LanguageModelV4; tools: <Tools extends ToolSet>(tools: Tools) => Tools }

// oxlint-disable-next-line typescript/no-explicit-any -- an agent of any options, tools, context and output, as the SDK's own types take it
export type AnyAgent = ToolLoopAgent<any, any, any, any>
type Settings = ToolLoopAgentSettings<never, ToolSet>
type Prepared = { model: LanguageModel; tools?: ToolSet; toolApproval?: unknown; prepareStep?: (step: unknown) => unknown }

/** Wraps an agent: each of its calls is a turn with skills. Throws if it is already wrapped. */
export function wrapAgent<Wrapped extends AnyAgent>(agent: Wrapped, begin: (model: LanguageModelV4, tools: ToolSet) => AgentTurn): Wrapped {
  refuseWrapped(agent, 'the agent')
  const settings = settingsOf(agent)
  refuseWrapped(settings.model, "the agent's model")
  const prepareCall = async (call: Prepared): Promise<unknown> => {
    // The agent's own preparation may choose another model or other tools for this call.
    const own = settings.prepareCall as ((call: Prepared) => Promise<Prepared | undefined>) | undefined
    const prepared = (await own?.(call)) ?? call
    const model = languageModel(prepared.model)
    // A plan must not bypass a tool that a person has to approve.
    const turn = begin(model, prepared.toolApproval ? {} : (prepared.tools ?? {}))
    const tools = prepared.tools ? { tools: turn.tools(prepared.tools) } : {}
    return { ...prepared, model: turn.model(model), ...tools, ...stepsOf(prepared, turn) }
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same settings but for the preparation of a call
  return markWrapped(new ToolLoopAgent({ ...settings, prepareCall } as unknown as Settings)) as unknown as Wrapped
}

/** A step may choose another model, which has the same turn. */
function stepsOf({ prepareStep }: Prepared, turn: AgentTurn): Partial<Prepared> {
  if (!prepareStep) return {}
  return {
    async prepareStep(step) {
      const prepared = (await prepareStep(step)) as { model?: LanguageModel } | undefined
      return prepared?.model ? { ...prepared, model: turn.model(languageModel(prepared.model)) } : prepared
    },
  }
}

/** The SDK keeps them to itself in its types only. */
function settingsOf(agent: AnyAgent): Settings {
  const { settings } = agent as unknown as { settings?: Settings }
  if (agent instanceof ToolLoopAgent && settings?.model) return settings
  throw new TypeError('wrap({agent}) takes a ToolLoopAgent of the AI SDK; for another agent wrap its model and tools: wrap({model, tools})')
}
