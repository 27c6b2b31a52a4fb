import { listen } from '../../cli/lib/listen.ts'

/** Teams by what an alert says, as a model would name them. */
const TEAMS: Readonly<Record<string, string>> = { disk: 'storage', login: 'security' }

/** Alerts in a fixed order, so that each run is the same. */
export const alertsOf = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => {
    const host = `web-${(index * 7) % 40}`
    return index % 2 === 0 ? `disk nearly full on ${host}` : `login failed three times on ${host}`
  })

/** A script that acts as the model of a provider. `asked`: the number of its calls. */
export async function scriptedModel() {
  let asked = 0
  const server = await listen(({ body }) => {
    asked += 1
    const { messages } = JSON.parse(body) as { messages: { content: unknown }[] }
    const said = JSON.stringify(messages.at(-1)?.content)
    const content = Object.entries(TEAMS).find(([word]) => said.includes(word))?.[1] ?? 'nobody'
    const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
    const usage = { prompt_tokens: 60, completion_tokens: 2, total_tokens: 62 }
    return { status: 200, body: { id: 'scripted', object: 'chat.completion', created: 0, model: 'scripted', choices, usage } }
  })
  return {
    vars: {
      REFLEX_MODEL: 'openai-compatible/gpt-5-mini',
      OPENAI_COMPATIBLE_BASE_URL: `http://${server.host}/v1`,
      OPENAI_COMPATIBLE_API_KEY: 'none',
    },
    asked: () => asked,
    stop: () => server.stop(),
  }
}
