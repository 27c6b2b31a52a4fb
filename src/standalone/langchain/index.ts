import type { BaseChatModel } from '@langchain/core/language_models/chat_models'
import type { StandaloneReflex } from '../reflex.ts'
import { TurnFinder } from '../turn-finder.ts'
import { type SkillChatModel, type Tooled, withSkills } from './skill-chat-model.ts'
import { planTools, type ChainTool } from './tools.ts'

export { SkillChatModel, type Tooled } from './skill-chat-model.ts'
export type { ChainTool } from './tools.ts'

/** A chat model, possibly with bound tools. `tools` are for plans only. */
export type ChainParts<Model> = { model: Model; tools?: readonly ChainTool[] }

/**
 * A LangChain chat model with skills. It always uses the protocol `asp`. Throws if the model is
 * already wrapped or is not a chat model.
 */
export function wrapLangChain(reflex: StandaloneReflex, parts: ChainParts<BaseChatModel>): SkillChatModel
export function wrapLangChain(reflex: StandaloneReflex, parts: ChainParts<Tooled>): Tooled
export function wrapLangChain(reflex: StandaloneReflex, { model, tools = [] }: ChainParts<BaseChatModel | Tooled>): Tooled {
  const begin = () => reflex.turn({ tools: planTools(tools), protocol: 'asp', agent: 'langchain' })
  return withSkills(model, new TurnFinder(begin))
}

/**
 * The graph that `graph` builds around the model with skills. A graph that is already built cannot
 * be given skills, and is refused.
 */
export function wrapLangGraph<Graph>(
  reflex: StandaloneReflex,
  { model, tools = [], graph }: ChainParts<BaseChatModel> & { graph: (model: SkillChatModel) => Graph },
): Graph {
  if (typeof graph !== 'function' || graph.length === 0) throw new TypeError(NOT_BUILT)
  return graph(wrapLangChain(reflex, { model, tools }))
}

const NOT_BUILT =
  'wrapLangGraph cannot give skills to a graph that is built already: its chat model is out of reach. Give it the chat model and a function ' +
  'that builds the graph around it: wrapLangGraph(reflex, { model, graph: (model) => createAgent({ model, tools }) })'
