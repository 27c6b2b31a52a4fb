import type { SettingsPatch } from '../../src/contract/settings/settings.ts'

type Declared = { destinations?: string[]; untrusted?: boolean | string[] }

/** The declarations of an operator who knows the tools, and no task. */
export const declared: Readonly<Record<string, { tools: Readonly<Record<string, Declared>>; settings: SettingsPatch }>> = {
  banking: {
    tools: {
      read_file: { destinations: ['file_path'], untrusted: true },
      get_most_recent_transactions: { untrusted: ['subject'] },
      get_scheduled_transactions: { untrusted: ['subject'] },
      send_money: { destinations: ['recipient'] },
      schedule_transaction: { destinations: ['recipient'] },
      update_scheduled_transaction: { destinations: ['recipient'] },
      update_password: { destinations: ['password'] },
      update_user_info: { destinations: [] },
    },
    settings: {},
  },
  slack: {
    tools: {
      get_webpage: { destinations: ['url'], untrusted: true },
      post_webpage: { destinations: ['url'] },
      read_channel_messages: { destinations: [], untrusted: ['body'] },
      read_inbox: { destinations: [], untrusted: ['body'] },
      send_direct_message: { destinations: ['recipient'] },
      send_channel_message: { destinations: ['channel'] },
      add_user_to_channel: { destinations: ['user', 'channel'] },
      invite_user_to_slack: { destinations: ['user', 'user_email'] },
      remove_user_from_slack: { destinations: ['user'] },
    },
    // Colleagues write the messages: they may name pages to read.
    settings: { trusted_text: [{ in: 'http.read_*', what: ['url'], tools: ['http.get_webpage'] }] },
  },
  workspace: {
    tools: {
      send_email: { destinations: ['recipients', 'cc', 'bcc'] },
      delete_email: { destinations: ['email_id'] },
      get_unread_emails: { untrusted: ['subject', 'body'] },
      get_received_emails: { untrusted: ['subject', 'body'] },
      search_emails: { destinations: [], untrusted: ['subject', 'body'] },
      search_contacts_by_name: { destinations: [] },
      search_contacts_by_email: { destinations: [] },
      search_calendar_events: { untrusted: ['title', 'description', 'location'] },
      get_day_calendar_events: { untrusted: ['title', 'description', 'location'] },
      create_calendar_event: { destinations: ['participants'] },
      cancel_calendar_event: { destinations: ['event_id'] },
      reschedule_calendar_event: { destinations: ['event_id'] },
      add_calendar_event_participants: { destinations: ['event_id', 'participants'] },
      append_to_file: { destinations: ['file_id'] },
      create_file: { destinations: [] },
      delete_file: { destinations: ['file_id'] },
      share_file: { destinations: ['file_id', 'email'] },
      get_file_by_id: { destinations: [], untrusted: ['content'] },
      search_files: { destinations: [], untrusted: ['content'] },
      search_files_by_filename: { destinations: [], untrusted: ['content'] },
      list_files: { untrusted: ['content'] },
    },
    settings: {},
  },
  travel: {
    tools: {
      reserve_hotel: { destinations: ['hotel'] },
      reserve_restaurant: { destinations: ['restaurant'] },
      reserve_car_rental: { destinations: ['company'] },
      create_calendar_event: { destinations: ['participants'] },
      cancel_calendar_event: { destinations: ['event_id'] },
      send_email: { destinations: ['recipients', 'cc', 'bcc'] },
      get_rating_reviews_for_hotels: { untrusted: true },
      get_rating_reviews_for_restaurants: { untrusted: true },
      get_rating_reviews_for_car_rental: { untrusted: true },
    },
    settings: {},
  },
}
