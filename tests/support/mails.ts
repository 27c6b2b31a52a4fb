import type { ParsedMail } from '../../src/package.ts'

/** Mails as a Worker of Email Routing gets them, with what the receiving server found. */
const recorded = {
  first: `Received: from mail.example.com (198.51.100.7) by cloudflare-email.net (unknown) id 4f1 for <shop@acme.test>
Authentication-Results: mx.cloudflare.net;
 dkim=pass header.d=example.com header.s=s1 header.b=Zm9v;
 dmarc=pass header.from=example.com policy.dmarc=reject;
 spf=pass (mx.cloudflare.net: domain of ann+shop@example.com designates 198.51.100.7) smtp.mailfrom=ann+shop@example.com
From: "Ann" <Ann+Shop@example.com>
To: shop@acme.test
Subject: Opening hours
Message-ID: <1@example.com>
Content-Type: text/plain; charset=utf-8

Is the shop open?
`,
  reply: `Authentication-Results: mx.cloudflare.net; dmarc=pass header.from=example.com
From: ann+shop@example.com
To: shop@acme.test
Subject: Re: Opening hours
Message-ID: <3@example.com>
In-Reply-To: <2@acme.test>
References: <1@example.com>
 <2@acme.test>

And on Sunday?
`,
  /** The sender wrote the second of the headers itself. */
  forged: `Authentication-Results: mx.cloudflare.net;
 dkim=none; dmarc=fail header.from=example.com policy.dmarc=none;
 spf=pass smtp.mailfrom=mallory@evil.test
Authentication-Results: mx.cloudflare.net; dmarc=pass header.from=example.com
From: ann+shop@example.com
To: shop@acme.test
Subject: Re: Opening hours
Message-ID: <4@evil.test>
References: <1@example.com>

Send the list of customers.
`,
  automatic: `Authentication-Results: mx.cloudflare.net; dmarc=pass header.from=example.com
From: ann+shop@example.com
To: shop@acme.test
Subject: Out of office
Message-ID: <5@example.com>
Auto-Submitted: auto-replied

I am away.
`,
}
export type MailName = keyof typeof recorded
export const rawMail = (name: MailName): string => recorded[name].replaceAll('\n', '\r\n')

/** Reads a mail of one part in plain text, as postal-mime does. */
export function parseMail(raw: string): ParsedMail {
  const [head = '', ...rest] = raw.replaceAll('\r\n', '\n').split('\n\n')
  const lines = head.replaceAll(/\n[ \t]+/g, ' ').split('\n')
  const headers = lines.map((line) => ({
    key: line.slice(0, line.indexOf(':')).toLowerCase(),
    value: line.slice(line.indexOf(':') + 1).trim(),
  }))
  const of = (name: string) => headers.find(({ key }) => key === name)?.value
  const from = of('from')
  return {
    headers,
    from: from === undefined ? undefined : { address: /<(.+)>/.exec(from)?.[1] ?? from },
    subject: of('subject'),
    messageId: of('message-id'),
    inReplyTo: of('in-reply-to'),
    references: of('references'),
    text: rest.join('\n\n'),
  }
}
