import { Agent, run, tool, setTracingDisabled } from '@openai/agents'
import { z } from 'zod'
setTracingDisabled(true)
const agent = new Agent({
  name: 'forecaster',
  instructions: 'Be brief.',
  model: 'gpt-5-mini',
  tools: process.argv[3]
    ? [
        tool({
          name: 'get_weather',
          description: 'w',
          parameters: z.object({ city: z.string() }),
          execute: async ({ city }) => `blue over ${city}`,
        }),
      ]
    : [],
})
const result = await run(agent, process.argv[2])
console.log(JSON.stringify({ text: result.finalOutput }))
if (process.argv[3]) {
  const tooled = await run(agent, 'weather in Bern')
  const streamed = await run(agent, 'hi stream', { stream: true })
  let events = 0
  for await (const _ of streamed) events += 1
  console.log(JSON.stringify({ tooled: tooled.finalOutput, streamed: streamed.finalOutput, events }))
}
