import { until } from './scopes.ts'

/** The frames of a socket as they arrive; `frame` waits for the first matching one of a type. */
export function framesOf<Frame extends { type: string }>(socket: WebSocket, { returns_marks = true } = {}) {
  const frames: Frame[] = []
  socket.addEventListener('message', ({ data }) => {
    const frame = JSON.parse(String(data)) as Frame
    if (frame.type === 'mark') {
      if (returns_marks) socket.send(String(data))
    } else frames.push(frame)
  })
  socket.accept()
  const frame = (type: string, fits: (frame: Frame) => boolean = () => true) =>
    until(async () => frames.find((one) => one.type === type && fits(one)), `a frame ${type}`)
  return { frames, frame }
}
