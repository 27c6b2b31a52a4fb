import { Agent } from '@mastra/core/agent'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
const provider = createOpenAICompatible({ name: 'provider', baseURL: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY })
const agent = new Agent({ id: 'a', name: 'a', instructions: 'Be brief.', model: provider('gpt-5-mini') })
const result = await agent.generate(process.argv[2])
console.log(JSON.stringify({ text: result.text }))
