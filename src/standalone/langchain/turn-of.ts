import type { BaseMessage } from '@langchain/core/messages'
import { hashJson } from '../../base/json.ts'
import type { ModelTurn } from '../../skills/model/model-turn.ts'
import type { TurnFinder } from '../turn-finder.ts'
import { callIds, isSystem, isUser } from './chat-messages.ts'

/**
 * The turn that a call belongs to, by what was said up to the last message of a user and by the
 * tool calls since.
 */
export async function turnOf(finder: TurnFinder, messages: readonly BaseMessage[]): Promise<ModelTurn> {
  const said = messages.findLastIndex(isUser)
  const spoken = messages.slice(0, said + 1).filter((message) => !isSystem(message))
  const key = await hashJson(spoken.map((message) => [message.getType(), message.text]))
  return finder.find(key, { begins: said === messages.length - 1, calls: messages.slice(said + 1).flatMap(callIds) })
}
