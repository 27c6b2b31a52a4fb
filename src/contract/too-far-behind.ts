/** How a socket is closed whose client does not read what it is sent, or does not say so. */
export const tooFarBehind = {
  code: 4008,
  reason: 'too much is unread: send each mark frame back, and resume with ?after=SEQ',
} as const
