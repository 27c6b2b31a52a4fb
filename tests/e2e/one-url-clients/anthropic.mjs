import Anthropic from '@anthropic-ai/sdk'
const client = new Anthropic()
const { data, response } = await client.messages
  .create({ model: 'claude-sonnet-4-5', max_tokens: 100, messages: [{ role: 'user', content: process.argv[2] }] })
  .withResponse()
console.log(
  JSON.stringify({
    text: data.content[0].text,
    trace: response.headers.get('x-reflex-trace'),
    by: response.headers.get('x-reflex-decided-by'),
  }),
)
if (process.argv[3]) {
  const stream = client.messages.stream({ model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'hi stream' }] })
  const final = await stream.finalMessage()
  let error
  try {
    await new Anthropic({ apiKey: 'wrong', maxRetries: 0 }).messages.create({
      model: 'm',
      max_tokens: 1,
      messages: [{ role: 'user', content: 'x' }],
    })
  } catch (thrown) {
    error = `${thrown.constructor.name} ${thrown.status}`
  }
  const models = await client.models.list()
  const named = await client.models.retrieve(models.data[0].id)
  console.log(JSON.stringify({ models: models.data.map(({ id }) => id), named: named.display_name }))
  const tool = await client.messages.create({
    model: 'm',
    max_tokens: 100,
    messages: [{ role: 'user', content: 'weather in Bern' }],
    tools: [{ name: 'get_weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }],
  })
  console.log(JSON.stringify({ stream: final.content[0].text, error, tool: tool.content, stop: tool.stop_reason }))
}
