import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText } from 'ai'

/**
 * An agent that exists: it sorts alerts by a model, and knows nothing of Reflex. Only its base URL
 * and its key are given.
 */
export async function sorted(alert: string, { baseURL, apiKey }: { baseURL: string; apiKey: string }) {
  const model = createOpenAICompatible({ name: 'provider', baseURL, apiKey })('gpt-5-mini')
  const { text, response } = await generateText({ model, system: 'Name the team for the alert, in one word.', prompt: alert })
  return { team: text, headers: response.headers ?? {} }
}
