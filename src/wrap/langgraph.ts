import { type ChatMessage, messagesOf, roleOf, textOfMessage, withText } from './chat-messages.ts'
import { ChatRounds } from './chat-rounds.ts'
import { failing, planTools, turnOf, type ChainTool } from './langchain.ts'
import type { Reflex } from './reflex.ts'
import { TurnFinder } from './turn-finder.ts'
import { markWrapped, refuseWrapped } from './wrapped.ts'

/** A compiled graph of LangGraph over messages, by its shape. */
export type MessageGraph = {
  invoke(
    state: { messages: unknown } & Record<string, unknown>,
    options?: unknown,
  ): Promise<{ messages: unknown } & Record<string, unknown>>
  stream(state: { messages: unknown } & Record<string, unknown>, options?: unknown): Promise<AsyncIterable<unknown>>
}

/**
 * The same graph with skills, at its boundary: it is told of them with its first input, and its last message is acted upon. Its models are not seen: where
 * the bulletin must not be in the graph's state, or the graph keeps its state by a checkpointer, wrap its chat model by `wrapLangChain` instead.
 */
export function wrapLangGraph(reflex: Reflex, { graph, tools = [] }: { graph: MessageGraph; tools?: readonly ChainTool[] }): MessageGraph {
  refuseWrapped(graph, 'the graph')
  if ('checkpointer' in graph && graph.checkpointer) {
    throw new TypeError(
      'the graph keeps its messages by a checkpointer, and the bulletin with them: wrap its chat model by wrapLangChain instead',
    )
  }
  const finder = new TurnFinder(() => reflex.turn({ tools: planTools(tools) }))
  const rounds = async (state: { messages: unknown }, options: unknown) => {
    const messages = messagesOf(state.messages)
    return new ChatRounds(await turnOf(finder, messages), messages, options)
  }
  return markWrapped({
    async invoke(state, options) {
      const current = await rounds(state, options)
      return failing(current, async () => {
        let input = state
        let said = ''
        for (;;) {
          const given = current.next()
          const output = await graph.invoke({ ...input, messages: given }, options)
          const messages = messagesOf(output.messages)
          const reply = replyIn(messages, given)
          if (!reply) return output
          const end = await current.ended(reply, said)
          if (!end.again) return { ...output, messages: [...messages.slice(0, -1), withText(reply, end.visible)] }
          said = end.visible
          input = output
        }
      })
    },
    /** Each chunk as it comes; a last one that is a whole state is what proposals are read from. */
    async stream(state, options) {
      return streamStates(graph, await rounds(state, options), { state, options })
    },
  })
}

async function* streamStates(
  graph: MessageGraph,
  rounds: ChatRounds,
  { state, options }: { state: { messages: unknown } & Record<string, unknown>; options: unknown },
): AsyncGenerator {
  let said = ''
  for (;;) {
    let last: unknown = null
    const given = rounds.next()
    for await (const chunk of await graph.stream({ ...state, messages: given }, options)) {
      if (last !== null) yield last
      last = chunk
    }
    const messages = isState(last) ? messagesOf(last.messages) : []
    const reply = replyIn(messages, given)
    const end = reply ? await rounds.ended(reply, said) : null
    if (!end?.again) {
      const shown = reply && end && isState(last) ? { ...last, messages: [...messages.slice(0, -1), withText(reply, end.visible)] } : last
      if (shown !== null) yield shown
      return
    }
    said = end.visible
  }
}

/** The model's own new answer, if it is what the graph ends with: not a tool's result, nor what the graph was given. */
function replyIn(messages: readonly unknown[], given: readonly unknown[]): ChatMessage | null {
  const last = messages.at(-1)
  if (last === undefined || roleOf(last) !== 'assistant') return null
  const before = given.at(-1)
  const is_old = before !== undefined && roleOf(before) === 'assistant' && textOfMessage(before) === textOfMessage(last)
  return is_old ? null : (last as ChatMessage)
}

const isState = (value: unknown): value is { messages: unknown[] } =>
  typeof value === 'object' && value !== null && 'messages' in value && Array.isArray(value.messages)
