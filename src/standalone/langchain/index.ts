import type { BaseChatModel } from '@langchain/core/language_models/chat_models'
import type { StandaloneReflex } from '../reflex.ts'
import { TurnFinder } from '../turn-finder.ts'
import { isBuilt, wrapBuilt, type BuiltGraph } from './built-graph.ts'
import { type ChatTurnFinder, type SkillChatModel, type Tooled, withSkills } from './skill-chat-model.ts'
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
  const finder: ChatTurnFinder = new TurnFinder((agent_state) =>
    reflex.turn({ tools: planTools(tools), protocol: 'asp', agent: 'langchain', agent_state }),
  )
  return withSkills(model, finder)
}

/**
 * The graph that `graph` builds around the model with skills. A graph that is built already is
 * wrapped at its boundary: its calls are turns in the log, and its models get no skills.
 */
export function wrapLangGraph<Graph>(
  reflex: StandaloneReflex,
  parts: ChainParts<BaseChatModel> & { graph: (model: SkillChatModel) => Graph },
): Graph
export function wrapLangGraph<Graph extends BuiltGraph>(reflex: StandaloneReflex, parts: { graph: Graph }): Graph
export function wrapLangGraph(reflex: StandaloneReflex, parts: { graph: unknown; model?: BaseChatModel; tools?: readonly ChainTool[] }) {
  const { graph, model, tools = [] } = parts
  if (typeof graph === 'function' && graph.length > 0 && model)
    return (graph as (model: SkillChatModel) => unknown)(wrapLangChain(reflex, { model, tools }))
  if (!isBuilt(graph) || model || tools.length > 0) throw new TypeError(NOT_BUILT)
  return wrapBuilt(graph, (agent_state) => reflex.turn({ agent: 'langgraph', agent_state }))
}

const NOT_BUILT =
  'wrapLangGraph cannot give skills to a graph that is built already: its chat model is out of reach. Give it the chat model and a function ' +
  'that builds the graph around it: wrapLangGraph(reflex, { model, graph: (model) => createAgent({ model, tools }) }); or give it the graph ' +
  'alone, whose calls are logged: wrapLangGraph(reflex, { graph })'
