//! By which a person sees and steers a running server: a tree of texts on a socket.

mod steer;

pub use steer::{
    AccountOp, AccountView, Change, ClientFacts, DeviceFacts, ExportFacts, GroupFacts, Lateness, OpView, Refused,
    ServerFacts, Steer, TenantFacts, Things,
};
