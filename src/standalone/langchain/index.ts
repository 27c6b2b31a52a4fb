import type { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { ModelTurn } from '../../skills/model/model-turn.ts'
import type { Reflex } from '../reflex.ts'
import { TurnFinder } from '../turn-finder.ts'
import { type SkillChatModel, type Tooled, withSkills } from './skill-chat-model.ts'
import { planTools, type ChainTool } from './tools.ts'

export { SkillChatModel, type Tooled } from './skill-chat-model.ts'
export type { ChainTool } from './tools.ts'

/**
 * A chat model, or one with tools or options bound to it. `tools` are what plans may call; no model
 * sees them.
 */
export type ChainParts<Model> = { model: Model; tools?: readonly ChainTool[] }

/**
 * A chat model of LangChain that has skills, to be composed as any other. Its model proposes by
 * blocks in its text, whatever the protocol of the Reflex. Throws where the model is wrapped
 * already, or is not a chat model.
 */
export function wrapLangChain(reflex: Reflex, parts: ChainParts<BaseChatModel>): SkillChatModel
export function wrapLangChain(reflex: Reflex, parts: ChainParts<Tooled>): Tooled
export function wrapLangChain(reflex: Reflex, { model, tools = [] }: ChainParts<BaseChatModel | Tooled>): Tooled {
  const begin = () => new ModelTurn({ ...reflex.turn({ tools: planTools(tools) }).options, protocol: 'asp' })
  return withSkills(model, new TurnFinder(begin))
}

/**
 * The graph that `graph` builds around the chat model that it is given: the user's model with
 * skills. A graph that stands already keeps its model to itself, and nobody can give it skills
 * without writing the protocol into its state: it is refused.
 */
export function wrapLangGraph<Graph>(
  reflex: Reflex,
  { model, tools = [], graph }: ChainParts<BaseChatModel> & { graph: (model: SkillChatModel) => Graph },
): Graph {
  if (typeof graph !== 'function' || graph.length === 0) throw new TypeError(NOT_BUILT)
  return graph(wrapLangChain(reflex, { model, tools }))
}

const NOT_BUILT =
  'wrapLangGraph cannot give skills to a graph that is built already: its chat model is out of reach. Give it the chat model and a function ' +
  'that builds the graph around it: wrapLangGraph(reflex, { model, graph: (model) => createAgent({ model, tools }) })'
