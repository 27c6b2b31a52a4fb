import { Agent } from '@mastra/core/agent'
const model = { id: 'openai/gpt-5-mini', url: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY }
const agent = new Agent({ id: 'a', name: 'a', instructions: 'Be brief.', model })
const result = await agent.generate(process.argv[2])
console.log(JSON.stringify({ text: result.text }))
