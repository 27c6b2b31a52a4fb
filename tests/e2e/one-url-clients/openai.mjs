import OpenAI from 'openai'
const client = new OpenAI()
const chat = await client.chat.completions
  .create({ model: 'gpt-5-mini', messages: [{ role: 'user', content: process.argv[2] }] })
  .withResponse()
console.log(
  JSON.stringify({
    text: chat.data.choices[0].message.content,
    trace: chat.response.headers.get('x-reflex-trace'),
    by: chat.response.headers.get('x-reflex-decided-by'),
  }),
)
if (process.argv[3]) {
  let said = ''
  for await (const chunk of await client.chat.completions.create({
    model: 'm',
    stream: true,
    messages: [{ role: 'user', content: 'hi stream' }],
  }))
    said += chunk.choices[0]?.delta?.content ?? ''
  const response = await client.responses.create({ model: 'm', input: 'hi response' })
  const events = []
  const stream = client.responses.stream({ model: 'm', input: 'hi events' })
  for await (const event of stream) events.push(event.type)
  const final = await stream.finalResponse()
  let error
  try {
    await new OpenAI({ apiKey: 'wrong', maxRetries: 0 }).chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'x' }] })
  } catch (thrown) {
    error = `${thrown.constructor.name} ${thrown.status} ${thrown.code}`
  }
  console.log(JSON.stringify({ said, response: response.output_text, final: final.output_text, events: new Set(events).size, error }))
  const models = []
  for await (const model of client.models.list()) models.push(await client.models.retrieve(model.id))
  console.log(JSON.stringify({ models: models.map(({ id }) => id) }))
  const runner = client.chat.completions.runTools({
    model: 'm',
    messages: [{ role: 'user', content: 'What is the weather in Bern?' }],
    tools: [
      {
        type: 'function',
        function: {
          name: 'get_weather',
          parse: JSON.parse,
          function: ({ city }) => `blue over ${city}`,
          parameters: { type: 'object', properties: { city: { type: 'string' } } },
        },
      },
    ],
  })
  console.log(JSON.stringify({ tools: await runner.finalContent() }))
}
