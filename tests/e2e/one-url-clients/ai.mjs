import { createOpenAI } from '@ai-sdk/openai'
import { generateText, streamText, tool, stepCountIs } from 'ai'
import { z } from 'zod'
const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL })
const one = await generateText({ model: openai('gpt-5-mini'), prompt: process.argv[2] })
console.log(
  JSON.stringify({
    text: one.text,
    trace: one.response.headers['x-reflex-trace'],
    by: one.response.headers['x-reflex-decided-by'] ?? null,
  }),
)
if (process.argv[3]) {
  const chat = await generateText({ model: openai.chat('gpt-4o-mini'), prompt: 'hi chat' })
  const streamed = await streamText({ model: openai('gpt-5-mini'), prompt: 'hi stream' }).text
  const tools = {
    get_weather: tool({ description: 'w', inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => `blue over ${city}` }),
  }
  const agent = await generateText({ model: openai('gpt-5-mini'), prompt: 'weather in Bern', tools, stopWhen: stepCountIs(3) })
  console.log(JSON.stringify({ chat: chat.text, streamed, agent: agent.text, steps: agent.steps.length }))
}
