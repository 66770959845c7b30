"""A language model on cuDNN's LSTM, with packed sequences of different lengths."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import finish, start
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Model(nn.Module):
    def __init__(self, vocabulary=10000, width=650):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, dropout=0.5, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=tokens.shape[1])
        return self.head(hidden)


job = start()
model = Model().to(job.device)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
for step in range(4):
    tokens = torch.randint(10000, (32, 36))
    lengths = torch.randint(20, 36, (32,))
    tokens = tokens.to(job.device)
    loss = F.cross_entropy(model(tokens[:, :-1], lengths.clamp(max=35)).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    optimizer.zero_grad()
finish(job)
