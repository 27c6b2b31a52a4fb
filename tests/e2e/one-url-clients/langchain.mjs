import { ChatOpenAI } from '@langchain/openai'
const model = new ChatOpenAI({ model: 'gpt-4o-mini', configuration: { baseURL: process.env.OPENAI_BASE_URL } })
const answer = await model.invoke(process.argv[2])
console.log(JSON.stringify({ text: answer.content, usage: answer.usage_metadata?.total_tokens }))
if (process.argv[3]) {
  let said = ''
  for await (const chunk of await model.stream('hi stream')) said += chunk.text
  const called = await model
    .bindTools([
      { type: 'function', function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } } },
    ])
    .invoke('weather in Bern')
  console.log(JSON.stringify({ said, calls: called.tool_calls }))
}
