import { useChat } from '@ai-sdk/react'
import type { UIMessage } from 'ai'
import { StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { ReflexChatTransport } from 'reflex-agents/ai-sdk'
import { scope } from './deployment.ts'

const transport = new ReflexChatTransport({ scope })

function Chat({ past }: { past: UIMessage[] }) {
  const { messages, sendMessage, status, error } = useChat({ transport, messages: past, resume: true })
  const [text, setText] = useState('')
  return (
    <>
      <h1>Chat</h1>
      <ol aria-label="Messages">
        {messages.map(({ id, role, parts }) => (
          <li key={id} data-role={role}>
            {parts.map((part, index) => {
              if (part.type === 'text') return <span key={index}>{part.text}</span>
              return part.type === 'dynamic-tool' ? <code key={index}>{part.toolName} </code> : null
            })}
          </li>
        ))}
      </ol>
      <p role="status">{error ? error.message : status}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void sendMessage({ text })
          setText('')
        }}
      >
        <label>
          Message <input value={text} onChange={({ target }) => setText(target.value)} />
        </label>
        <button type="submit">Send</button>
        <button type="button" onClick={() => void transport.stop()}>
          Stop
        </button>
      </form>
    </>
  )
}

const root = createRoot(document.getElementById('root') as HTMLElement)
root.render(<p>Loading…</p>)
// The chat so far comes from the scope's log. An answer that is not complete yet is resumed.
const past = await transport.messages()
root.render(
  <StrictMode>
    <Chat past={past} />
  </StrictMode>,
)
