const sendingFailed = { code: 1011, reason: 'sending failed' }

export function closeQuietly(socket: WebSocket, { code, reason } = sendingFailed): void {
  try {
    socket.close(code, reason)
  } catch {
    // It is closed already.
  }
}
