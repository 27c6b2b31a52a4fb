import { isStepCount, streamText, type ModelMessage } from 'ai'
import type { AgentDeps } from '../define-agent.ts'

/** Enough steps for some tool calls and the answer, beside one for each event after the first. */
const MOST_STEPS = 8

type StreamedAnswer = {
  /** The text of all steps, in paragraphs. */
  text: string
  /** The text of the last step. Empty if the model spent all its steps on tools. */
  last: string
}

/** Asks the turn's model, which may call the agent's tools, and streams its text to the sockets. */
export async function streamAnswer(
  deps: Pick<AgentDeps, 'model' | 'tools' | 'signal' | 'stream'>,
  { events = 1, ...asked }: { instructions: string; messages: ModelMessage[]; events?: number },
): Promise<StreamedAnswer> {
  const { stream } = streamText({
    ...asked,
    model: deps.model,
    tools: deps.tools,
    stopWhen: isStepCount(MOST_STEPS + Math.max(0, events - 1)),
    abortSignal: deps.signal,
    // The turn is retried as a whole; retries within it would multiply.
    maxRetries: 0,
    // The SDK's error handler would only print the error that is thrown below.
    onError: () => {},
  })
  const answer: StreamedAnswer = { text: '', last: '' }
  const say = (words: string) => {
    answer.text += words
    deps.stream(words)
  }
  for await (const part of stream) {
    if (part.type === 'error') throw part.error
    if (part.type === 'start-step') answer.last = ''
    // Text before a tool call and text after it are separate paragraphs.
    if (part.type === 'text-start' && answer.text !== '') say('\n\n')
    if (part.type !== 'text-delta') continue
    say(part.text)
    answer.last += part.text
  }
  deps.signal.throwIfAborted()
  return answer
}
